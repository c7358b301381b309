//! Tests of clients that disconnect before their response, and of clients that only close their
//! sending side.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use haul_tcp_relay::{Address, EndReason, HttpOptions, ManualClock};
use haul_testing::eventually;

use super::{Http, Peer, client, http_with, ok, target};
use crate::targets::Unresponsive;

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const OLD_GET: &str = "GET / HTTP/1.0\r\n\r\n";

/// Options with timeouts so long that no test reaches them.
fn long_timeouts() -> HttpOptions {
    let long = Duration::from_hours(1);
    let options =
        HttpOptions { response_time_max: long, body_time_max: long, ..HttpOptions::default() };
    // Without a pool, released upstream connections are closed.
    HttpOptions { idle_connections_max: 0, ..options }
}

/// Returns a relay, and a receiver of its target's connections, each after its first request.
fn relay_and_requests(listen: impl IntoIterator<Item = Address>) -> (Http, Receiver<Peer>) {
    let (sender, requests): (Sender<Peer>, _) = channel();
    let sender = Mutex::new(sender);
    let address = target(move |_, mut peer| {
        peer.request().unwrap();
        sender.lock().unwrap().send(peer).unwrap();
    });
    (http_with([address], long_timeouts(), |config| config.listen.extend(listen)), requests)
}

fn assert_reset(mut server: Peer, what: &str) {
    assert_eq!(server.rest().unwrap_err().kind(), ErrorKind::ConnectionReset, "{what}");
}

#[test]
fn client_disconnect_resets_the_upstream_connection() {
    type Disconnect = fn(Peer);
    let cases: [(&str, Disconnect); 4] = [
        ("it resets", <Peer>::reset),
        ("it resets after another request", |mut peer| {
            peer.send(GET);
            peer.reset();
        }),
        ("it closes", drop),
        ("it closes after another request", |mut peer| peer.send(GET)),
    ];
    for (what, disconnect) in cases {
        let (relay, requests) = relay_and_requests([]);
        let mut client = client(&relay);
        client.send(GET);
        let server = requests.recv().unwrap();
        disconnect(client);
        assert_reset(server, what);
        relay.until(|stats| stats.ended(EndReason::Reset) == 1 && stats.targets[0].active == 0);
    }
}

#[test]
fn unix_client_disconnect_resets_the_upstream_connection() {
    for request in [GET, OLD_GET] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("client");
        let (relay, requests) = relay_and_requests([Address::Unix(path.clone())]);
        let mut client = UnixStream::connect(path).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        let server = requests.recv().unwrap();
        drop(client);
        assert_reset(server, request);
        relay.until(|stats| stats.ended(EndReason::Reset) == 1);
    }
}

/// The client resets while the target pauses within the response.
#[test]
fn client_reset_within_a_response_resets_the_upstream_connection() {
    let (relay, requests) = relay_and_requests([]);
    let mut client = client(&relay);
    client.send(GET);
    let mut server = requests.recv().unwrap();
    server.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsome");
    client.head().unwrap();
    client.body(4).unwrap();
    client.reset();
    assert_reset(server, "the target was still to send the rest");
    relay.until(|stats| stats.ended(EndReason::Reset) == 1);
}

#[test]
fn half_closed_client_receives_a_late_response() {
    for (request, is_probed) in [(GET, true), (OLD_GET, false)] {
        let (relay, requests) = relay_and_requests([]);
        let mut client = client(&relay);
        client.send(request);
        client.shut();
        let mut server = requests.recv().unwrap();
        // The relay probes the client with an interim response, which HTTP/1.0 does not have.
        if is_probed {
            assert_eq!(client.head().unwrap().status, 100);
        }
        server.send(ok("late"));
        let response = client.response().unwrap();
        assert_eq!((response.status, &response.body[..]), (200, &b"late"[..]));
        assert_eq!(client.rest().unwrap(), b"");
        drop(server);
        relay.until(|stats| stats.ended(EndReason::Clean) == 1);
    }
}

/// Returns `true` if bytes were received that are not read yet.
fn is_readable(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let is_readable = stream.peek(&mut [0]).is_ok();
    stream.set_nonblocking(false).unwrap();
    is_readable
}

/// The client is probed once, and the probe does not extend the response timeout.
#[test]
fn half_closed_client_receives_a_gateway_timeout() {
    let (sender, received) = channel();
    let sender = Mutex::new(sender);
    let address = target(move |_, mut peer| {
        peer.request().unwrap();
        sender.lock().unwrap().send(()).unwrap();
        drop(peer.rest());
    });
    let clock = ManualClock::new();
    let (probe_delay, response_time_max) = (Duration::from_secs(1), Duration::from_mins(30));
    let options = HttpOptions { response_time_max, ..long_timeouts() };
    let relay = http_with([address], options, |config| config.clock = (&clock).into());
    let mut client = client(&relay);
    client.send(GET);
    client.shut();
    // The response is awaited from now on. The relay may notice the end of the input later.
    received.recv().unwrap();
    let mut awaited = Duration::ZERO;
    eventually("the client is probed", || {
        clock.advance(probe_delay);
        awaited += probe_delay;
        is_readable(client.stream())
    });
    assert_eq!(client.response().unwrap().status, 100);
    clock.advance(response_time_max - awaited);
    assert_eq!(client.response().unwrap().status, 504);
    assert_eq!(client.rest().unwrap(), b"");
}

#[test]
fn client_reset_ends_the_connection_attempt() {
    let unresponsive = Unresponsive::new();
    let relay = http_with([unresponsive.address.clone()], long_timeouts(), |config| {
        config.limits.connect_time_max = Duration::from_hours(1);
    });
    let mut client = client(&relay);
    client.send(GET);
    relay.until(|stats| stats.targets[0].active == 1);
    client.reset();
    relay.until(|stats| stats.ended(EndReason::Reset) == 1 && stats.targets[0].active == 0);
}

#[test]
fn client_close_between_requests_is_clean() {
    let (relay, requests) = relay_and_requests([]);
    let mut client = client(&relay);
    client.send(GET);
    let mut server = requests.recv().unwrap();
    server.send(ok("first"));
    assert_eq!(client.response().unwrap().body, b"first");
    drop(client);
    assert_eq!(server.rest().unwrap(), b"", "a clean EOF");
    relay.until(|stats| stats.ended(EndReason::Clean) == 1);
    assert!(server.stream().read(&mut [0]).is_ok_and(|bytes| bytes == 0));
}
