//! Clients that go while their answer is awaited, and those that only have said all.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use haul_tcp_relay::{Address, Ended, HttpOptions};

use super::{Http, Peer, client, http_with, ok, target};
use crate::targets::Deaf;

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const OLD_GET: &str = "GET / HTTP/1.0\r\n\r\n";

/// No time is over soon.
fn patient() -> HttpOptions {
    let long = Duration::from_hours(1);
    let options =
        HttpOptions { response_time_max: long, body_time_max: long, ..HttpOptions::default() };
    // What is given back is closed.
    HttpOptions { spares_max: 0, ..options }
}

/// A relay, and each connection of its target once a request has come over it.
fn asked(listen: impl IntoIterator<Item = Address>) -> (Http, Receiver<Peer>) {
    let (sender, asked): (Sender<Peer>, _) = channel();
    let sender = Mutex::new(sender);
    let address = target(move |_, mut peer| {
        peer.request().unwrap();
        sender.lock().unwrap().send(peer).unwrap();
    });
    (http_with([address], patient(), |config| config.listen.extend(listen)), asked)
}

fn is_told(mut far: Peer, what: &str) {
    assert_eq!(far.rest().unwrap_err().kind(), ErrorKind::ConnectionReset, "{what}");
}

#[test]
fn a_client_that_goes_while_it_waits_gives_its_target_back() {
    type Go = fn(Peer);
    let ways: [(&str, Go); 4] = [
        ("it resets", Peer::reset),
        ("it resets after another request", |mut peer| {
            peer.send(GET);
            peer.reset();
        }),
        ("it closes", drop),
        ("it closes after another request", |mut peer| peer.send(GET)),
    ];
    for (what, go) in ways {
        let (relay, asked) = asked([]);
        let mut client = client(&relay);
        client.send(GET);
        let far = asked.recv().unwrap();
        go(client);
        is_told(far, what);
        relay.until(|stats| stats.ended(Ended::Reset) == 1 && stats.targets[0].active == 0);
    }
}

#[test]
fn a_client_of_a_unix_socket_that_goes_while_it_waits_gives_its_target_back() {
    for request in [GET, OLD_GET] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("near");
        let (relay, asked) = asked([Address::Unix(path.clone())]);
        let mut client = UnixStream::connect(path).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        let far = asked.recv().unwrap();
        drop(client);
        is_told(far, request);
        relay.until(|stats| stats.ended(Ended::Reset) == 1);
    }
}

/// The same while a response is under way that says nothing for now.
#[test]
fn a_client_that_resets_within_a_response_gives_its_target_back() {
    let (relay, asked) = asked([]);
    let mut client = client(&relay);
    client.send(GET);
    let mut far = asked.recv().unwrap();
    far.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsome");
    client.head().unwrap();
    client.body(4).unwrap();
    client.reset();
    is_told(far, "it waits for the rest");
    relay.until(|stats| stats.ended(Ended::Reset) == 1);
}

#[test]
fn a_client_that_has_said_all_gets_a_late_response_too() {
    for (request, is_asked) in [(GET, true), (OLD_GET, false)] {
        let (relay, asked) = asked([]);
        let mut client = client(&relay);
        client.send(request);
        client.shut();
        let mut far = asked.recv().unwrap();
        // It is asked whether it is still there, if that can be said in its version.
        if is_asked {
            assert_eq!(client.head().unwrap().status(), 100);
        }
        far.send(ok("late"));
        let response = client.response().unwrap();
        assert_eq!((response.status(), &response.body[..]), (200, &b"late"[..]));
        assert_eq!(client.rest().unwrap(), b"");
        drop(far);
        relay.until(|stats| stats.ended(Ended::Clean) == 1);
    }
}

/// It is asked once, and what it is asked is no sign of the target's life.
#[test]
fn a_client_that_has_said_all_hears_when_its_target_is_too_late() {
    let address = target(|_, mut peer| drop(peer.rest()));
    let options = HttpOptions { response_time_max: Duration::from_secs(6), ..patient() };
    let relay = http_with([address], options, |_| {});
    let mut client = client(&relay);
    client.send(GET);
    client.shut();
    assert_eq!(client.response().unwrap().status(), 100);
    assert_eq!(client.response().unwrap().status(), 504);
    assert_eq!(client.rest().unwrap(), b"");
}

#[test]
fn a_client_that_goes_before_a_target_has_accepted_is_not_waited_for() {
    let deaf = Deaf::new();
    let relay = http_with([deaf.address.clone()], patient(), |config| {
        config.limits.connect_time_max = Duration::from_hours(1);
    });
    let mut client = client(&relay);
    client.send(GET);
    relay.until(|stats| stats.targets[0].active == 1);
    client.reset();
    relay.until(|stats| stats.ended(Ended::Reset) == 1 && stats.targets[0].active == 0);
}

#[test]
fn a_client_that_closes_between_requests_is_no_trouble() {
    let (relay, asked) = asked([]);
    let mut client = client(&relay);
    client.send(GET);
    let mut far = asked.recv().unwrap();
    far.send(ok("first"));
    assert_eq!(client.response().unwrap().body, b"first");
    drop(client);
    assert_eq!(far.rest().unwrap(), b"", "nothing is cut");
    relay.until(|stats| stats.ended(Ended::Clean) == 1);
    assert!(far.stream().read(&mut [0]).is_ok_and(|bytes| bytes == 0));
}
