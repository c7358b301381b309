//! Files over TLS.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use haul_file_server::Cold;
use haul_testing::{Transport, until_full};

use crate::client::Client;
use crate::helper::{ServedDir, noise};

#[test]
fn files_of_every_tier_are_sent_over_one_connection() {
    let place = ServedDir::over(Transport::Tls);
    let (small, medium, large) = (noise(1, 4 << 10), noise(2, 300 << 10), noise(3, 50 << 20));
    place.write("small", &small);
    place.write("resident", &medium);
    place.write_cold("cold", &medium);
    place.write_cold("direct", &large);
    place.write("large", &large);
    for cold in [Cold::Copy, Cold::Splice] {
        let running = place.serve(|config| config.tiers.cold = cold);
        let mut client = Client::new(running.address);
        let all = [("small", &small), ("resident", &medium), ("cold", &medium), ("direct", &large)];
        for (name, content) in all.into_iter().chain([("large", &large), ("small", &small)]) {
            let response = client.get(&format!("/{name}"), "");
            assert_eq!(response.status, 200);
            assert!(response.body == *content, "{name}, {cold:?}");
        }
        let response = client.get("/direct", "Range: bytes=1000000-1999999\r\n");
        assert_eq!(response.status, 206);
        assert!(response.body == large[1_000_000..2_000_000]);
        let parts = client.get("/small", "Range: bytes=0-9, 100-109\r\n");
        assert_eq!(parts.status, 206);
        assert_eq!(client.get("/missing", "").status, 404);
    }
}

#[test]
fn slow_client_receives_every_byte_and_close_notify() {
    let place = ServedDir::over(Transport::Tls);
    let content = noise(4, 20 << 20);
    place.write("a", &content);
    let running = place.serve(|_| {});
    let mut client = Client::new(running.address);
    client.say("GET /a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    until_full(client.stream());
    assert!(client.answer("GET").body == content);
    assert_eq!(client.rest(), (Vec::new(), true));
    running.wait_until("the connection is closed", |stats| stats.connections_open == 0);
}

#[test]
fn incomplete_handshake_ends_at_the_time_limit_of_a_head() {
    let place = ServedDir::over(Transport::Tls);
    let soon = Duration::from_millis(200);
    let running = place.serve(|config| config.limits.head_time = soon);
    let mut client = TcpStream::connect(running.address.address).unwrap();
    // The beginning of a record with a ClientHello.
    client.write_all(&[0x16, 3, 1, 2, 0, 1]).unwrap();
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
    running.wait_until("the connection is closed", |stats| stats.connections_open == 0);
}

#[test]
fn request_without_tls_is_answered_in_words() {
    let place = ServedDir::over(Transport::Tls);
    let running = place.serve(|_| {});
    let mut client = TcpStream::connect(running.address.address).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("https://"), "{answer}");
}

#[test]
fn file_that_is_truncated_ends_without_close_notify() {
    let place = ServedDir::over(Transport::Tls);
    let path = place.write("a", noise(5, 64 << 20));
    let running = place.serve(|_| {});
    let mut client = Client::new(running.address);
    client.say("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.head().status, 200);
    std::fs::File::options().write(true).open(path).unwrap().set_len(1 << 20).unwrap();
    assert!(!client.rest().1, "the client sees a clean end");
}
