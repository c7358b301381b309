//! Connections: sequences of requests, limits, and the end.

use std::io::Write;
use std::time::Duration;

use haul_testing::{Random, Transport, over};

use crate::client::{Client, get};
use crate::helper::{ServedDir, noise};

over!(Plain Inherited Tls => (
    pipelined_requests_are_answered_in_order,
    thousand_pipelined_requests_are_answered,
    split_requests_are_answered_like_whole_ones,
    reset_at_any_point_affects_no_other_connection,
    http10_connection_is_closed_unless_keep_alive_is_requested,
    last_permitted_response_announces_the_close,
    bodies_of_requests_are_discarded,
    malformed_request_is_refused_and_the_connection_closed,
    connection_above_the_limit_waits_for_a_free_slot,
    draining_completes_responses_and_closes_idle_connections,
    drained_thread_does_not_cut_other_responses,
    drain_time_is_limited,
    requests_above_the_limit_do_not_cut_off_earlier_responses,
));

fn pipelined_requests_are_answered_in_order(transport: Transport) {
    let place = ServedDir::over(transport);
    for name in ["a", "b", "c"] {
        place.write(name, name.repeat(1000));
    }
    place.write_cold("cold", &noise(1, 3 << 20));
    let running = place.serve(|config| config.content.listings = true);
    let mut client = Client::new(running.address);
    let targets = ["/a", "/cold", "/b", "/none", "/c", "/", "/cold", "/a"];
    let mut all = String::new();
    for target in targets {
        all += &format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    client.say(&all);
    for target in targets {
        let answer = client.answer("GET");
        let expected = get(running.address, target, "");
        assert_eq!(answer.status, expected.status, "{target}");
        assert!(answer.body == expected.body, "{target}");
    }
}

fn thousand_pipelined_requests_are_answered(transport: Transport) {
    let place = ServedDir::over(transport);
    place.write("a", "0123456789");
    let running = place.serve(|_| {});
    let mut client = Client::new(running.address);
    client.say("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(1000));
    for _ in 0..1000 {
        assert_eq!(client.answer("GET").text(), "0123456789");
    }
}

fn split_requests_are_answered_like_whole_ones(transport: Transport) {
    let place = ServedDir::over(transport);
    place.write("a", "0123456789");
    let running = place.serve(|_| {});
    let mut random = Random::from_environment();
    let request = "GET /a HTTP/1.1\r\nHost: localhost\r\nRange: bytes=2-5\r\n\r\n".repeat(3);
    let mut client = Client::new(running.address);
    for _ in 0..50 {
        let mut rest = request.as_bytes();
        while !rest.is_empty() {
            let piece = 1 + usize::try_from(random.below(rest.len() as u64)).unwrap();
            client.say(&rest[..piece]);
            rest = &rest[piece..];
        }
        for _ in 0..3 {
            let answer = client.answer("GET");
            assert_eq!((answer.status, answer.text()), (206, "2345"));
        }
    }
}

fn reset_at_any_point_affects_no_other_connection(transport: Transport) {
    let place = ServedDir::over(transport);
    let bytes = noise(1, 3 << 20);
    place.write_cold("cold", &bytes);
    place.write("small", &bytes[..20_000]);
    let running = place.serve(|config| config.tiers.promote_asked = u32::MAX);
    let mut random = Random::from_environment();
    let request = "GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n\
                   GET /cold HTTP/1.1\r\nHost: localhost\r\nRange: bytes=5-\r\n\r\n";
    let mut other = Client::new(running.address);
    for round in 0..300 {
        let mut client = Client::new(running.address);
        let (sent, received) = if round % 3 == 0 {
            (random.below(request.len() as u64), 0)
        } else {
            (request.len() as u64, random.below(3 << 20))
        };
        client.say(&request.as_bytes()[..usize::try_from(sent).unwrap()]);
        client.read_exact(usize::try_from(received).unwrap());
        rustix::net::sockopt::set_socket_linger(client.stream(), Some(Duration::ZERO)).unwrap();
        drop(client);
        let start = usize::try_from(random.below(2 << 20)).unwrap();
        let part = other.get("/cold", &format!("Range: bytes={start}-{}\r\n", start + 99_999));
        assert!(
            part.body == bytes[start..start + 100_000],
            "bytes of another response in round {round}"
        );
    }
    running.wait_until("all resources are released", |stats| {
        stats.connections_open == 1 && stats.buffers_leased == 0
    });
}

fn http10_connection_is_closed_unless_keep_alive_is_requested(transport: Transport) {
    let place = ServedDir::over(transport);
    place.write("a", "a");
    let running = place.serve(|_| {});
    let mut client = Client::new(running.address);
    client.say("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    let answer = client.answer("GET");
    assert_eq!((answer.text(), answer.field("connection")), ("a", Some("keep-alive")));
    client.say("GET /a HTTP/1.0\r\n\r\n");
    let answer = client.answer("GET");
    assert_eq!((answer.text(), answer.field("connection")), ("a", Some("close")));
    assert_eq!(client.rest(), (Vec::new(), true));
    let mut client = Client::new(running.address);
    assert_eq!(client.get("/a", "Connection: close\r\n").field("connection"), Some("close"));
    assert_eq!(client.rest(), (Vec::new(), true));
}

fn last_permitted_response_announces_the_close(transport: Transport) {
    let place = ServedDir::over(transport);
    place.write("a", "a");
    let running = place.serve(|config| config.limits.requests = 3);
    let mut client = Client::new(running.address);
    client.say("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(5));
    for expected in [None, None, Some("close")] {
        assert_eq!(client.answer("GET").field("connection"), expected);
    }
    assert_eq!(client.rest(), (Vec::new(), true), "two requests are not answered");
}

fn bodies_of_requests_are_discarded(transport: Transport) {
    let place = ServedDir::over(transport);
    place.write("a", "a");
    let running = place.serve(|_| {});
    let mut client = Client::new(running.address);
    let body = "GET /b HTTP/1.1\r\n\r\n";
    let fields = format!("Content-Length: {}\r\n", body.len());
    client.say(format!("GET /a HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n{body}"));
    assert_eq!(client.answer("GET").text(), "a");
    assert_eq!(client.get("/a", "").text(), "a", "the body is not a request");
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let fields = "Transfer-Encoding: chunked\r\n";
    client.say(format!("GET /a HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n{chunked}"));
    assert_eq!(client.answer("GET").text(), "a");
    assert_eq!(client.get("/a", "").text(), "a", "nor is the chunk");

    let mut client = Client::new(running.address);
    let answer = client.get("/a", "Content-Length: 10000000\r\n");
    assert_eq!((answer.status, answer.field("connection")), (413, Some("close")));
    assert!(client.rest().1, "a clean end");
    // A chunked body is answered before its end is known.
    for (body, status) in
        [("10000000\r\n".to_owned() + &"x".repeat(70_000), 413), ("x".into(), 400)]
    {
        let mut client = Client::new(running.address);
        assert_eq!(client.get("/a", fields).status, 200);
        client.try_say(body);
        let answer = client.answer("GET");
        assert_eq!((answer.status, answer.field("connection")), (status, Some("close")));
        assert!(client.rest().1, "a clean end");
    }
}

fn malformed_request_is_refused_and_the_connection_closed(transport: Transport) {
    let place = ServedDir::over(transport);
    let running = place.serve(|_| {});
    let long = "a".repeat(20_000);
    for (request, status) in [
        ("nonsense\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\nHost: h\n\n".to_owned(), 400),
        (
            "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
                .to_owned(),
            400,
        ),
        (format!("GET /{long} HTTP/1.1\r\n"), 414),
        (format!("GET / HTTP/1.1\r\nHost: h\r\nX: {long}\r\n"), 431),
        (format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n", "X: y\r\n".repeat(200)), 431),
        ("GET / HTTP/2.0\r\nHost: h\r\n\r\n".to_owned(), 505),
    ] {
        let mut client = Client::new(running.address);
        client.say(&request);
        let answer = client.answer("GET");
        assert_eq!((answer.status, answer.field("connection")), (status, Some("close")));
        assert_eq!(client.rest(), (Vec::new(), true), "{status}");
    }
    running.wait_until("all connections are closed", |stats| stats.connections_open == 0);
}

fn connection_above_the_limit_waits_for_a_free_slot(transport: Transport) {
    let place = ServedDir::over(transport);
    place.write("a", "a");
    place.write("big", noise(1, 64 << 20));
    let running = place.serve(|config| {
        config.limits.connections = 4;
        config.limits.peer_connections = Some(0);
    });
    // Idle connections would give way to another client.
    let mut busy: Vec<_> = (0..4).map(|_| Client::new(running.address)).collect();
    for client in &mut busy {
        client.say("GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!(client.head().status, 200);
    }
    let address = running.address;
    let late = std::thread::spawn(move || get(address, "/a", ""));
    assert_eq!(busy[3].read_exact(1 << 20).len(), 1 << 20);
    assert_eq!(running.stats().connections, 4);
    drop(busy.pop());
    assert_eq!(late.join().unwrap().text(), "a");
    assert_eq!(running.stats().connections, 5);
}

fn draining_completes_responses_and_closes_idle_connections(transport: Transport) {
    let place = ServedDir::over(transport);
    let bytes = noise(1, 32 << 20);
    place.write_cold("big", &bytes);
    place.write("a", "a");
    let running = place.serve(|_| {});
    let mut idle = Client::new(running.address);
    assert_eq!(idle.get("/a", "").text(), "a");
    let mut busy = Client::new(running.address);
    busy.say("GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(busy.head().status, 200);
    running.handle().drain();
    assert_eq!(idle.rest(), (Vec::new(), true));
    assert!(busy.read_exact(bytes.len()) == bytes);
    assert_eq!(busy.rest(), (Vec::new(), true));
    running.ended();
}

/// Threads without connections end at once.
fn drained_thread_does_not_cut_other_responses(transport: Transport) {
    let place = ServedDir::over(transport);
    let bytes = noise(1, 12 << 20);
    place.write("big", &bytes);
    for _ in 0..40 {
        let running = place.serve(|config| config.threads = 4);
        let mut client = Client::new(running.address);
        client.say("GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!(client.head().status, 200);
        running.handle().drain();
        assert!(client.read_exact(bytes.len()) == bytes);
    }
}

fn drain_time_is_limited(transport: Transport) {
    let place = ServedDir::over(transport);
    place.write("big", noise(1, 64 << 20));
    let running = place.serve(|config| config.limits.drain_time = Duration::from_millis(100));
    let mut stalled = Client::new(running.address);
    stalled.say("GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(stalled.head().status, 200);
    running.handle().drain();
    running.ended();
    assert!(stalled.rest().0.len() < 64 << 20);
}

#[test]
fn several_threads_serve_tcp_and_unix_sockets() {
    let place = ServedDir::new();
    place.write("a", "a");
    let running = place.serve(|config| config.threads = 3);
    let clients: Vec<_> = (0..30).map(|_| get(running.address, "/a", "")).collect();
    assert!(clients.iter().all(|answer| answer.text() == "a"));
    let socket = place.path("socket");
    let running = place.serve(|config| {
        config.listen = haul_file_server::Address::Unix(socket.clone());
        config.threads = 2;
    });
    let mut stream = std::os::unix::net::UnixStream::connect(&socket).unwrap();
    stream.write_all(b"GET /a HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut stream, &mut answer).unwrap();
    assert!(answer.ends_with("\r\n\r\na"), "{answer}");
    drop(running);
}

fn requests_above_the_limit_do_not_cut_off_earlier_responses(transport: Transport) {
    let place = ServedDir::over(transport);
    place.write("a", "12345");
    let running = place.serve(|config| config.limits.requests = 2);
    let request = "GET /a HTTP/1.1\r\nHost: localhost.\r\n\r\n";
    assert_eq!(get(running.address, "/a", "").status, 200);
    let mut client = Client::new(running.address);
    client.say(request.repeat(4));
    assert_eq!([client.answer("GET").status, client.answer("GET").status], [200, 200]);
    assert_eq!(client.rest(), (Vec::new(), true));
    // If the connection were closed at once, the first write would cause a reset.
    client.say(request);
    client.say(request);
    assert_eq!(client.rest(), (Vec::new(), true));
}
