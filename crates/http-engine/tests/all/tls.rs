//! The same requests and responses over TLS.

use std::io::{Read, Write};
use std::net::TcpStream;

use haul_testing::{ClientStream, Transport, eventually};

use crate::pieces::window_body;
use crate::server::{HEAD_TIME, Server, rest};

struct Secured {
    server: Server,
}

impl Secured {
    fn new() -> Self {
        Self { server: Server::over(Transport::Tls) }
    }

    fn connect(&self) -> ClientStream {
        self.server.client()
    }

    /// Sends bytes, and returns everything that is received until the server closes cleanly.
    fn exchange(&self, bytes: &[u8]) -> String {
        let mut client = self.connect();
        client.write_all(bytes).unwrap();
        let mut received = Vec::new();
        client.read_to_end(&mut received).unwrap();
        String::from_utf8(received).unwrap()
    }
}

#[test]
fn responses_of_every_framing_are_whole() {
    let secured = Secured::new();
    let close = "host: a\r\nconnection: close\r\n\r\n";
    let inline = secured.exchange(format!("GET /inline/300000 HTTP/1.1\r\n{close}").as_bytes());
    assert!(inline.ends_with(&format!("\r\n\r\n{}", "i".repeat(300_000))));
    let chunked = secured.exchange(format!("GET /chunked HTTP/1.1\r\n{close}").as_bytes());
    assert!(chunked.ends_with("\r\n3\r\none\r\n3\r\ntwo\r\n5\r\nthree\r\n0\r\n\r\n"), "{chunked}");
    let frames = secured.exchange(format!("GET /frames HTTP/1.1\r\n{close}").as_bytes());
    assert_eq!(frames.split_once("\r\n\r\n").unwrap().1.len(), 10_000_000);
    let window = secured.exchange(format!("GET /window HTTP/1.1\r\n{close}").as_bytes());
    assert!(window.ends_with(&format!("\r\n\r\n{}", window_body())));
    let old = secured.exchange(b"GET /chunked HTTP/1.0\r\n\r\n");
    assert!(old.ends_with("connection: close\r\n\r\nonetwothree"), "{old}");
}

#[test]
fn bodies_and_pipelined_requests_arrive() {
    let secured = Secured::new();
    let mut requests = Vec::new();
    for n in 0..50 {
        let body = "x".repeat(n * 1000);
        let length = body.len();
        requests.extend(format!("GET /inline/{n} HTTP/1.1\r\nhost: a\r\n\r\n").into_bytes());
        let post =
            format!("POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n{body}");
        requests.extend(post.into_bytes());
    }
    requests.extend(b"GET /pause HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    let received = secured.exchange(&requests);
    let mut left = received.as_str();
    for n in 0..50 {
        for expected in ["i".repeat(n), "x".repeat(n * 1000)] {
            let (_, rest) = left.split_once("\r\n\r\n").unwrap();
            left = rest.strip_prefix(&expected).unwrap_or_else(|| panic!("{n}"));
        }
    }
    assert!(left.ends_with("\r\n\r\npaused"), "{left}");
}

#[test]
fn body_that_is_read_slowly_and_response_that_is_read_slowly_are_whole() {
    let secured = Secured::new();
    let mut client = secured.connect();
    client.write_all(b"POST /slow HTTP/1.1\r\nhost: a\r\ncontent-length: 5000000\r\n\r\n").unwrap();
    client.write_all(&vec![b'x'; 5_000_000]).unwrap();
    client.write_all(b"GET /frames HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
    let ended = &secured.server.ended;
    eventually("the first response has ended", || ended.lock().len() == 1);
    // The second one fills the buffers of the sockets.
    secured.server.settle();
    let mut received = Vec::new();
    client.read_to_end(&mut received).unwrap();
    let text = String::from_utf8(received).unwrap();
    assert!(text.contains("\r\n\r\n5000000HTTP/1.1 200 OK\r\n"));
    assert_eq!(text.rsplit_once("\r\n\r\n").unwrap().1.len(), 10_000_000);
}

#[test]
fn early_response_can_be_read_by_a_client_that_still_sends() {
    let secured = Secured::new();
    let mut client = secured.connect();
    client
        .write_all(b"POST /refuse HTTP/1.1\r\nhost: a\r\ncontent-length: 5000000\r\n\r\n")
        .unwrap();
    // The client stops to send when the server has closed.
    client.write_all(&vec![0; 5_000_000]).ok();
    let mut received = Vec::new();
    client.read_to_end(&mut received).ok();
    assert!(received.starts_with(b"HTTP/1.1 403 "));
}

#[test]
fn response_that_fails_does_not_look_complete_to_an_old_client() {
    let secured = Secured::new();
    let mut client = secured.connect();
    client.write_all(b"GET /breaks HTTP/1.0\r\n\r\n").unwrap();
    assert!(client.read_to_end(&mut Vec::new()).is_err());
    let plain = Server::new();
    let mut client = plain.connect();
    client.write_all(b"GET /breaks HTTP/1.0\r\n\r\n").unwrap();
    assert!(client.read_to_end(&mut Vec::new()).is_err());
}

#[test]
fn incomplete_handshake_is_closed_and_plain_request_answered_in_words() {
    let secured = Secured::new();
    let mut silent = TcpStream::connect(secured.server.address).unwrap();
    silent.write_all(&[0x16, 3, 1, 2, 0, 1]).unwrap();
    secured.server.until_open(1);
    secured.server.clock.advance(HEAD_TIME);
    assert_eq!(rest(&mut silent), "");
    let mut plain = secured.server.connect();
    plain.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    let answer = rest(&mut plain);
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("https://"), "{answer}");
}
