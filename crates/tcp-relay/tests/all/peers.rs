//! Tests of the limits of one client. The loopback addresses 127.0.0.1 and 127.0.0.2 are two
//! clients.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

use haul_tcp_relay::{Config, EndReason, HttpOptions, Limits, Rate};
use haul_testing::http::Peer;
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};

use crate::http::{http_with, ok, responding_target};
use crate::support::{Relay, config, listener};

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// Connects from a loopback address such as 127.0.0.2.
fn connect_from(last: u8, to: SocketAddr) -> TcpStream {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddr::from(([127, 0, 0, last], 0))).unwrap();
    connect(&socket, &to).unwrap();
    socket.into()
}

#[test]
fn clients_with_half_heads_delay_no_other_client() {
    let (address, _) = responding_target(|_| ok("here"));
    // If the half heads did not give way, no time limit would make room for others.
    let relay = http_with([address], HttpOptions::default(), |config| {
        config.limits.head_time_max = Duration::from_hours(1);
        config.limits.connections_max = 200;
        config.threads = 2;
    });
    let _hostile: Vec<_> = (0..400)
        .map(|_| {
            let mut stream = relay.connect();
            // The connection may be refused at once, if none of the others waits yet.
            stream.write_all(b"GET / HTTP/1.1\r\nHo").ok();
            stream
        })
        .collect();
    for _ in 0..20 {
        let mut client = Peer::new(connect_from(2, relay.tcp()));
        assert_eq!(client.exchange(REQUEST).body, b"here");
    }
    relay.until(|stats| {
        stats.active == 100
            && stats.evicted + stats.refused == 400 - 100
            && stats.ended(EndReason::Evicted) == stats.evicted
    });
}

#[test]
fn half_heads_of_several_clients_delay_no_other_client() {
    let (address, _) = responding_target(|_| ok("here"));
    let relay = http_with([address], HttpOptions::default(), |config| {
        config.limits.connections_max = 4;
    });
    let hostile = [2, 2, 3, 3].map(|last| {
        let mut stream = connect_from(last, relay.tcp());
        stream.write_all(b"GET / HTTP/1.1\r\nHo").unwrap();
        stream
    });
    relay.until(|stats| stats.active == 4);
    for _ in 0..3 {
        let mut client = Peer::new(connect_from(4, relay.tcp()));
        assert_eq!(client.exchange(REQUEST).body, b"here");
    }
    relay.until(|stats| stats.evicted >= 1 && stats.refused == 0);
    drop(hostile);
}

#[test]
fn connection_beyond_the_limit_of_a_client_is_reset() {
    let (target, address) = listener();
    let limits = Limits { peer_connections_max: Some(2), ..Limits::default() };
    let relay = Relay::start(Config { limits, ..config([address]) });
    let pair = |mut client: TcpStream| {
        client.write_all(b"a").unwrap();
        let mut server = target.accept().unwrap().0;
        server.read_exact(&mut [0]).unwrap();
        (client, server)
    };
    let pairs = [pair(relay.connect()), pair(relay.connect())];
    let error = relay.connect().read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let other = pair(connect_from(2, relay.tcp()));
    assert_eq!((relay.stats().refused, relay.stats().active), (1, 3));
    drop((pairs, other));
    relay.until(|stats| stats.active == 0);
    drop(pair(relay.connect()));
}

#[test]
fn http_connection_beyond_the_limit_of_a_client_is_answered_with_503() {
    let (respond, permission) = channel();
    let permission = Mutex::new(permission);
    let (address, _) = responding_target(move |_| {
        // Later requests are answered at once: the sender is dropped.
        permission.lock().unwrap().recv().unwrap_or_default();
        ok("here")
    });
    let relay = http_with([address], HttpOptions::default(), |config| {
        config.limits.peer_connections_max = Some(1);
    });
    let mut busy = Peer::new(relay.connect());
    busy.send(REQUEST);
    relay.until(|stats| stats.http.requests == 1);
    let mut refused = Peer::new(relay.connect());
    let response = refused.response().unwrap();
    assert_eq!((response.status, response.field("retry-after")), (503, Some("1")));
    respond.send(()).unwrap();
    drop(respond);
    assert_eq!(busy.response().unwrap().body, b"here");
    // Now the first connection is idle, and gives way.
    relay.until(|_| {
        let mut client = Peer::new(relay.connect());
        client.try_send(REQUEST).is_ok()
            && client.response().is_ok_and(|response| response.status == 200)
    });
    assert!(relay.stats().evicted >= 1);
}

#[test]
fn request_above_the_rate_of_a_client_is_answered_with_429() {
    let (address, log) = responding_target(|_| ok("here"));
    let rate = Rate { burst: NonZero::new(3).unwrap(), .."2/min".parse().unwrap() };
    let options = HttpOptions { peer_rate: Some(rate), ..HttpOptions::default() };
    let relay = http_with([address], options, |_| {});
    let mut client = Peer::new(relay.connect());
    for _ in 0..3 {
        assert_eq!(client.exchange(REQUEST).status, 200);
    }
    let response = client.exchange(REQUEST);
    assert_eq!((response.status, response.field("retry-after")), (429, Some("30")));
    let mut other = Peer::new(connect_from(2, relay.tcp()));
    assert_eq!(other.exchange(REQUEST).status, 200);
    assert_eq!(log.requests().len(), 4);
    let stats = relay.stats().http;
    assert_eq!((stats.error_responses(429), stats.rate_limited), (1, 1));
}
