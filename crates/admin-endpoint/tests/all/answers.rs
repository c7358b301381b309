//! What is answered, and how connections go on after it.

use std::os::unix::net::UnixStream;

use haul_admin_endpoint::Admin;

use crate::world::{Fixed, HEALTH, OK, all, connect, say, start, until};

#[test]
fn a_connection_is_kept_and_requests_sent_at_once_are_answered_in_turn() {
    let (_admin, address) = start(Fixed::default());
    let mut client = connect(address);
    for _ in 0..3 {
        say(&mut client, HEALTH);
        assert!(until(&mut client, OK).contains("\r\nConnection: keep-alive\r\n"));
    }
    say(&mut client, &HEALTH.repeat(100));
    (0..100).for_each(|_| drop(until(&mut client, OK)));
    say(&mut client, "GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let last = all(&mut client);
    assert!(last.contains("\r\nConnection: close\r\n") && last.ends_with("ok\n"), "{last}");
}

#[test]
fn old_clients_are_closed_unless_they_ask_for_more() {
    let (_admin, address) = start(Fixed::default());
    let mut client = connect(address);
    say(&mut client, "GET /metrics HTTP/1.0\r\n\r\n");
    assert!(all(&mut client).ends_with("\r\n\r\na \n"));
    let mut client = connect(address);
    say(&mut client, "GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert!(until(&mut client, OK).contains("\r\nConnection: keep-alive\r\n"));
    say(&mut client, "HEAD /health HTTP/1.0\r\n\r\n");
    let last = all(&mut client);
    assert!(last.contains("\r\nContent-Length: 3\r\n") && last.ends_with("\r\n\r\n"), "{last}");
}

#[test]
fn what_is_no_request_or_brings_a_body_is_answered_and_the_last() {
    let (_admin, address) = start(Fixed::default());
    let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(20_000));
    for (head, status) in [
        ("GET /health\r\n\r\n", "400"),
        ("GET /health HTTP/1.1\r\n\r\n", "400"),
        ("GET /health HTTP/3.0\r\nHost: a\r\n\r\n", "505"),
        (&long, "414"),
        ("POST /health HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n", "405"),
        ("GET /health HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", "200"),
    ] {
        let mut client = connect(address);
        say(&mut client, head);
        if head.contains("100000") {
            // The answer is not lost by it.
            say(&mut client, &"x".repeat(40_000));
        }
        let answer = all(&mut client);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{head}: {answer}");
        assert!(answer.contains("\r\nConnection: close\r\n"), "{head}: {answer}");
    }
}

#[test]
fn a_socket_in_the_file_system_is_an_address_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("admin");
    let address = format!("unix:{}", path.display()).parse().unwrap();
    // Twice: what is left of the first one is taken over.
    for _ in 0..2 {
        let admin = Admin::bind(&address, Fixed::default()).unwrap();
        assert_eq!(*admin.address(), address);
        let mut client = UnixStream::connect(&path).unwrap();
        say(&mut client, HEALTH);
        assert!(until(&mut client, OK).starts_with("HTTP/1.1 200 OK\r\n"));
    }
}

#[test]
fn nobody_is_answered_once_it_is_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("admin");
    let address = format!("unix:{}", path.display()).parse().unwrap();
    let admin = Admin::bind(&address, Fixed::default()).unwrap();
    let mut client = UnixStream::connect(&path).unwrap();
    say(&mut client, HEALTH);
    until(&mut client, OK);
    assert!(Admin::bind(&address, Fixed::default()).is_err(), "it is taken");
    drop(admin);
    assert_eq!(all(&mut client), "");
    assert!(UnixStream::connect(&path).is_err());
}
