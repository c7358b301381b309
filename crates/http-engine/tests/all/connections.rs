//! Connections: many requests on one, limits, and the end.

use std::io::{Read, Write};
use std::time::Duration;

use haul_testing::{Endpoint, Transport, eventually, over};

use crate::server::{HEAD_TIME, IDLE_TIME, STALL_TIME, Server, read_until, rest};

/// The shortest time after which the event loop checks deadlines again.
const MOMENT: Duration = Duration::from_millis(100);

over!(Plain Inherited Tls => (
    pipelined_requests_are_answered_in_order,
    old_client_keeps_its_connection_if_it_asks_for_it,
    malformed_request_is_refused_and_the_connection_closed,
    head_has_its_time_and_an_idle_connection_has_more,
    peer_with_too_many_connections_loses_its_oldest_idle_one,
    draining_completes_requests_and_closes_idle_connections,
    stalled_bodies_and_responses_have_their_time,
    slow_reader_behind_full_kernel_buffers_is_not_disconnected,
));

fn pipelined_requests_are_answered_in_order(transport: Transport) {
    let server = Server::over(transport);
    let mut requests = String::new();
    for n in 0..200 {
        requests += &match n % 4 {
            0 => format!("GET /inline/{n} HTTP/1.1\r\nhost: a\r\n\r\n"),
            1 => format!("GET /{n} HTTP/1.1\r\nhost: a\r\n\r\n"),
            2 => "GET /pause HTTP/1.1\r\nhost: a\r\n\r\n".to_owned(),
            _ => format!("POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\n{n:04}"),
        };
    }
    requests += "GET /last HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let received = server.exchange(requests.as_bytes());
    let mut left = received.as_str();
    for n in 0..200 {
        let expected = match n % 4 {
            0 => "i".repeat(n),
            1 => format!("GET /{n}"),
            2 => "paused".to_owned(),
            _ => format!("{n:04}"),
        };
        let (head, rest) = left.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{n}: {head}");
        left = rest.strip_prefix(&expected).unwrap_or_else(|| panic!("{n}"));
    }
    assert!(left.ends_with("connection: close\r\ncontent-length: 9\r\n\r\nGET /last"), "{left}");
}

fn old_client_keeps_its_connection_if_it_asks_for_it(transport: Transport) {
    let server = Server::over(transport);
    let mut stream = server.client();
    stream.write_all(b"GET /a HTTP/1.0\r\nconnection: keep-alive\r\n\r\n").unwrap();
    assert!(read_until(&mut stream, "GET /a").contains("connection: keep-alive\r\n"));
    stream.write_all(b"GET /b HTTP/1.0\r\n\r\n").unwrap();
    assert!(rest(&mut stream).ends_with("GET /b"));
}

fn malformed_request_is_refused_and_the_connection_closed(transport: Transport) {
    let server = Server::over(transport);
    for (text, status) in [
        ("GET\r\n\r\n", "400"),
        ("GET / HTTP/9.9\r\n\r\n", "505"),
        ("GET / HTTP/1.1\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nhost: a\r\ncontent-length: x\r\n\r\n", "400"),
    ] {
        let received = server.exchange(text.as_bytes());
        assert!(received.starts_with(&format!("HTTP/1.1 {status} ")), "{text}: {received}");
        assert!(received.contains("connection: close\r\n"), "{received}");
    }
}

fn head_has_its_time_and_an_idle_connection_has_more(transport: Transport) {
    let server = Server::over(transport);
    let mut idle = server.client();
    idle.write_all(b"GET /a HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    read_until(&mut idle, "GET /a");
    let (mut silent, mut half) = (server.client(), server.client());
    half.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    server.until_open(3);
    server.clock.advance(HEAD_TIME - MOMENT);
    server.settle();
    // More bytes of the head do not extend its time.
    half.write_all(b"host: a\r\n").unwrap();
    server.settle();
    assert_eq!(server.connections.stats().timed_out, 0);
    server.clock.advance(MOMENT);
    let received = rest(&mut half);
    assert!(received.starts_with("HTTP/1.1 408 "), "{received}");
    assert!(received.contains("connection: close\r\n"), "{received}");
    assert_eq!(rest(&mut silent), "", "no request was begun");
    let stats = server.connections.stats();
    assert_eq!((stats.timed_out, stats.slow), (2, 1));
    idle.write_all(b"GET /b HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    read_until(&mut idle, "GET /b");
    server.clock.advance(IDLE_TIME - MOMENT);
    server.settle();
    assert_eq!(server.connections.stats().timed_out, 2);
    server.clock.advance(MOMENT);
    assert_eq!(rest(&mut idle), "");
    let stats = server.connections.stats();
    assert_eq!((stats.timed_out, stats.slow), (3, 1));
}

fn peer_with_too_many_connections_loses_its_oldest_idle_one(transport: Transport) {
    let server = Server::with_limits(transport, 10, 3);
    let mut busy = server.client();
    busy.write_all(b"POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n1").unwrap();
    let mut idle: Vec<_> = (0..2).map(|_| server.client()).collect();
    for stream in &mut idle {
        stream.write_all(b"GET /a HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
        read_until(stream, "GET /a");
        server.settle();
        server.clock.advance(MOMENT);
    }
    if transport == Transport::Tls {
        let server = Endpoint { address: server.address, transport };
        assert!(server.connect().is_err(), "within the grace time, before the handshake");
    } else {
        let refused = server.exchange(b"");
        assert!(refused.starts_with("HTTP/1.1 503 "), "within the grace time: {refused}");
    }
    server.clock.advance(Duration::from_millis(400));
    let mut new = server.client();
    new.write_all(b"GET /b HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    read_until(&mut new, "GET /b");
    assert_eq!(idle[0].read(&mut [0]).unwrap(), 0);
    busy.write_all(b"2").unwrap();
    read_until(&mut busy, "\r\n\r\n12");
    let stats = server.connections.stats();
    assert_eq!((stats.refused, stats.evicted, stats.open), (1, 1, 3));
}

fn draining_completes_requests_and_closes_idle_connections(transport: Transport) {
    let mut server = Server::over(transport);
    let [mut idle, mut late] = [server.client(), server.client()];
    for stream in [&mut idle, &mut late] {
        stream.write_all(b"GET /a HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
        read_until(stream, "GET /a");
    }
    let mut busy = server.client();
    busy.write_all(b"POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n1").unwrap();
    server.until_open(3);
    server.settle();
    server.handle.drain();
    server.settle();
    // A request that was sent before the client could know is still answered.
    late.write_all(b"GET /b HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    assert!(rest(&mut late).ends_with("GET /b"));
    server.clock.advance(Duration::from_secs(1));
    assert_eq!(rest(&mut idle), "");
    busy.write_all(b"2").unwrap();
    read_until(&mut busy, "\r\n\r\n12");
    drop((idle, late, busy));
    server.join();
}

fn stalled_bodies_and_responses_have_their_time(transport: Transport) {
    let server = Server::over(transport);
    let mut half = server.client();
    half.write_all(b"POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nab").unwrap();
    let mut unread = server.client();
    unread.write_all(b"GET /frames HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    server.until_open(2);
    server.settle();
    server.clock.advance(2 * STALL_TIME - MOMENT);
    server.settle();
    assert_eq!(server.connections.stats().open, 2);
    server.clock.advance(MOMENT);
    assert_eq!(rest(&mut half), "");
    // The time of the response begins when the buffers of both sockets are full.
    eventually("the response that is not read is cut", || {
        server.clock.advance(STALL_TIME);
        server.connections.stats().open == 0
    });
    assert_eq!(server.connections.stats().slow, 1, "the response that is not read");
    let mut slow = server.client();
    slow.write_all(b"POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\n").unwrap();
    for _ in 0..4 {
        server.until_open(1);
        server.settle();
        server.clock.advance(STALL_TIME);
        slow.write_all(b"x").unwrap();
    }
    read_until(&mut slow, "\r\n\r\nxxxx");
}

/// The buffers of the kernel hold megabytes, so the socket has no room for many periods, although
/// the client reads a hundred times the minimum rate.
fn slow_reader_behind_full_kernel_buffers_is_not_disconnected(transport: Transport) {
    let server = Server::over(transport);
    let mut client = server.client();
    client.write_all(b"GET /inline/100000000 HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    let mut piece = vec![0; 2 << 20];
    for _ in 0..10 {
        client.read_exact(&mut piece).unwrap();
        server.settle();
        server.clock.advance(STALL_TIME);
    }
    server.settle();
    let stats = server.connections.stats();
    assert_eq!((stats.slow, stats.open), (0, 1));
}
