//! Bodies of requests and responses, in every framing and at every speed.

use std::io::Write;
use std::net::Shutdown;

use haul_testing::{Transport, eventually};

use crate::pieces::window_body;
use crate::server::{Server, read_until, rest};

fn request(method: &str, path: &str, fields: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{fields}\r\n")
}

#[test]
fn body_arrives_in_any_framing_and_any_pieces() {
    let server = Server::new();
    let length = request("POST", "/echo", "content-length: 11\r\n") + "hello world";
    let chunked = request("POST", "/echo", "transfer-encoding: chunked\r\n")
        + "5;a=b\r\nhello\r\n6\r\n world\r\n0\r\nTrailer: x\r\n\r\n";
    let iterations = || server.handle.stats().iterations;
    for text in [length, chunked] {
        for piece in [1, 2, 7, 64, 1000] {
            let mut stream = server.connect();
            stream.set_nodelay(true).unwrap();
            for bytes in text.as_bytes().chunks(piece) {
                let before = iterations();
                stream.write_all(bytes).unwrap();
                if piece < 64 {
                    eventually("the event loop has iterated", || iterations() > before);
                }
            }
            let received = rest(&mut stream);
            assert!(received.starts_with("HTTP/1.1 200 OK\r\n"), "{received}");
            assert!(received.ends_with("content-length: 11\r\n\r\nhello world"), "{received}");
        }
    }
}

#[test]
fn body_that_is_read_slowly_is_received_as_fast_as_it_is_read() {
    let server = Server::new();
    let bytes = 20_000_000;
    let mut stream = server.connect();
    let head = request("POST", "/slow", &format!("content-length: {bytes}\r\n"));
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&vec![b'x'; bytes]).unwrap();
    assert!(rest(&mut stream).ends_with("\r\n\r\n20000000"));
}

#[test]
fn cut_and_malformed_bodies_are_incomplete() {
    let server = Server::new();
    let length = request("POST", "/echo", "content-length: 11\r\n") + "hello";
    let chunked = request("POST", "/echo", "transfer-encoding: chunked\r\n") + "5\r\nhel";
    for text in [length, chunked] {
        let mut stream = server.connect();
        stream.write_all(text.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert!(rest(&mut stream).starts_with("HTTP/1.1 400 "));
    }
    let malformed = request("POST", "/echo", "transfer-encoding: chunked\r\n") + "zz\r\n";
    assert!(server.exchange(malformed.as_bytes()).starts_with("HTTP/1.1 400 "));
}

#[test]
fn continue_is_sent_when_the_body_is_wanted() {
    let server = Server::new();
    let expect = "content-length: 5\r\nexpect: 100-continue\r\n";
    let mut stream = server.connect();
    stream.write_all(request("POST", "/echo", expect).as_bytes()).unwrap();
    assert_eq!(read_until(&mut stream, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"hello").unwrap();
    assert!(rest(&mut stream).ends_with("\r\n\r\nhello"));
    // Some clients take the next response for the one that they wait for.
    let mut stream = server.connect();
    let empty = expect.replace('5', "0");
    stream.write_all(request("POST", "/echo", &empty).as_bytes()).unwrap();
    assert_eq!(read_until(&mut stream, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    assert!(rest(&mut stream).starts_with("HTTP/1.1 200 "));
    let mut stream = server.connect();
    stream.write_all(request("POST", "/refuse", expect).as_bytes()).unwrap();
    let received = rest(&mut stream);
    assert!(received.starts_with("HTTP/1.1 403 ") && received.contains("connection: close"));
}

#[test]
fn early_response_can_be_read_by_a_client_that_still_sends() {
    let server = Server::new();
    let mut stream = server.connect();
    stream
        .write_all(b"POST /refuse HTTP/1.1\r\nhost: a\r\ncontent-length: 9000000\r\n\r\n")
        .unwrap();
    stream.write_all(&vec![0; 9_000_000]).unwrap();
    let received = rest(&mut stream);
    assert!(received.starts_with("HTTP/1.1 403 ") && received.contains("connection: close"));
}

#[test]
fn response_of_unknown_length_is_chunked_or_ends_with_the_connection() {
    let server = Server::new();
    let received = server.exchange(request("GET", "/chunked", "").as_bytes());
    let body = "\r\n\r\n3\r\none\r\n3\r\ntwo\r\n5\r\nthree\r\n0\r\n\r\n";
    assert!(received.ends_with(body), "{received}");
    let received = server.exchange(b"GET /chunked HTTP/1.0\r\n\r\n");
    assert!(received.ends_with("connection: close\r\n\r\nonetwothree"), "{received}");
}

#[test]
fn long_response_is_whole_for_a_slow_client() {
    let server = Server::new();
    let mut stream = server.connect();
    stream.write_all(request("GET", "/frames", "").as_bytes()).unwrap();
    server.until_open(1);
    server.settle();
    let received = rest(&mut stream);
    let (head, body) = received.split_once("\r\n\r\n").unwrap();
    assert!(head.ends_with("content-length: 10000000"), "{head}");
    let bytes = body.as_bytes().chunks(100_000).enumerate();
    assert_eq!(body.len(), 10_000_000);
    bytes.for_each(|(n, frame)| assert!(frame.iter().all(|byte| usize::from(*byte) == n)));
}

#[test]
fn response_that_cannot_be_completed_is_shorter_than_declared() {
    let server = Server::new();
    for path in ["/short", "/fails"] {
        let received = server.exchange(request("GET", path, "").as_bytes());
        assert!(received.contains("content-length: 5\r\n"), "{received}");
        assert!(!received.ends_with("abcde") && !received.ends_with("0\r\n\r\n"), "{received}");
    }
    for path in ["/error", "/panic"] {
        assert_eq!(server.exchange(request("GET", path, "").as_bytes()), "", "{path}");
    }
    assert!(server.exchange(request("GET", "/a", "").as_bytes()).ends_with("GET /a"));
}

#[test]
fn head_response_has_no_body() {
    let server = Server::new();
    let received = server.exchange(request("HEAD", "/abc", "").as_bytes());
    assert!(received.ends_with("content-length: 9\r\n\r\n"), "{received}");
}

#[test]
fn window_of_a_file_is_sent_between_bytes() {
    let server = Server::new();
    for path in ["/window", "/window-chunked"] {
        let response = server.exchange(request("GET", path, "").as_bytes());
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        let is_chunked = head.contains("transfer-encoding: chunked");
        let body = if is_chunked { dechunked(body) } else { body.to_owned() };
        assert!(is_chunked == (path != "/window") && body == window_body(), "{head}");
    }
}

#[test]
fn window_beyond_the_end_of_its_file_breaks_the_connection() {
    let server = Server::new();
    let response = server.exchange(request("GET", "/window-short", "").as_bytes());
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("content-length: 4999012"), "{head}");
    assert_eq!(body.len(), 3_999_007);
    assert!(window_body().starts_with(body));
}

#[test]
fn inline_window_is_sent_among_pipelined_requests() {
    for transport in [Transport::Plain, Transport::Tls] {
        let server = Server::over(transport);
        let next = "GET /inline/3 HTTP/1.1\r\nhost: a\r\n\r\n";
        let window = next.replace("/3", "/window");
        let head = window.replace("GET", "HEAD");
        let last = request("GET", "/inline/3", "");
        let received = server.exchange([next, &window, &head, &window, &last].concat().as_bytes());
        let bodies: Vec<_> = received.split("\r\n\r\n").skip(1).collect();
        let ends = |at: usize, body: &str| {
            assert!(bodies[at].starts_with(&format!("{body}HTTP/1.1 200 OK\r\n")), "{at}");
        };
        ends(0, "iii");
        ends(1, &window_body());
        ends(2, "");
        ends(3, &window_body());
        assert_eq!(bodies[4..], ["iii"]);
    }
}

#[test]
fn parsed_request_is_answered_with_its_body_however_it_arrives() {
    let server = Server::new();
    let fields = "x-parsed: of \r\ncontent-length: 5\r\n";
    for pause_at in [0, 3] {
        let mut stream = server.connect();
        stream.write_all(request("PUT", "/echo", fields).as_bytes()).unwrap();
        stream.write_all(&b"12345"[..pause_at]).unwrap();
        stream.write_all(&b"12345"[pause_at..]).unwrap();
        assert!(rest(&mut stream).ends_with("content-length: 7\r\n\r\nof12345"));
    }
    let mut stream = server.connect();
    let expecting = fields.to_owned() + "expect: 100-continue\r\n";
    stream.write_all(request("PUT", "/echo", &expecting).as_bytes()).unwrap();
    assert_eq!(read_until(&mut stream, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"12345").unwrap();
    assert!(rest(&mut stream).ends_with("\r\n\r\nof12345"));
    let mut stream = server.connect();
    stream.write_all(request("PUT", "/echo", fields).as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(rest(&mut stream), "", "the future has failed");
}

/// Returns the bytes of a chunked body.
fn dechunked(mut body: &str) -> String {
    let mut bytes = String::new();
    loop {
        let (length, rest) = body.split_once("\r\n").unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        if length == 0 {
            return bytes;
        }
        bytes.push_str(&rest[..length]);
        body = rest[length..].strip_prefix("\r\n").unwrap();
    }
}
