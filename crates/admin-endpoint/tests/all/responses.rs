//! Tests responses, and whether the connection stays open after a response.

use std::os::unix::net::UnixStream;

use haul_admin_endpoint::Admin;

use crate::harness::{Fixed, HEALTH, OK, connect, read_to_end, read_until, send, start};

#[test]
fn pipelined_requests_are_answered_in_order() {
    let (_admin, address) = start(Fixed::default());
    let mut client = connect(address);
    for _ in 0..3 {
        send(&mut client, HEALTH);
        assert!(read_until(&mut client, OK).contains("\r\nConnection: keep-alive\r\n"));
    }
    send(&mut client, &HEALTH.repeat(100));
    (0..100).for_each(|_| drop(read_until(&mut client, OK)));
    send(&mut client, "GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let last = read_to_end(&mut client);
    assert!(last.contains("\r\nConnection: close\r\n") && last.ends_with("ok\n"), "{last}");
}

#[test]
fn http_1_0_connection_closes_without_keep_alive() {
    let (_admin, address) = start(Fixed::default());
    let mut client = connect(address);
    send(&mut client, "GET /metrics HTTP/1.0\r\n\r\n");
    assert!(read_to_end(&mut client).ends_with("\r\n\r\na \n"));
    let mut client = connect(address);
    send(&mut client, "GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert!(read_until(&mut client, OK).contains("\r\nConnection: keep-alive\r\n"));
    send(&mut client, "HEAD /health HTTP/1.0\r\n\r\n");
    let last = read_to_end(&mut client);
    assert!(last.contains("\r\nContent-Length: 3\r\n") && last.ends_with("\r\n\r\n"), "{last}");
}

#[test]
fn invalid_request_or_body_closes_the_connection() {
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
        send(&mut client, head);
        if head.contains("100000") {
            // Send input that the server does not read. The client must receive the response
            // anyway.
            send(&mut client, &"x".repeat(40_000));
        }
        let response = read_to_end(&mut client);
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{head}: {response}");
        assert!(response.contains("\r\nConnection: close\r\n"), "{head}: {response}");
    }
}

fn get(address: std::net::SocketAddr, path: &str) -> String {
    let mut client = connect(address);
    send(&mut client, &format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
    read_to_end(&mut client)
}

#[test]
fn source_with_an_overview_has_a_console() {
    let source = Fixed { has_console: true, ..Fixed::default() };
    let (_admin, address) = start(source.clone());
    let page = get(address, "/");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    assert!(page.contains("\r\nContent-Security-Policy: default-src 'none'; script-src 'self'; "));
    for (path, content_type) in [
        ("/console.css", "text/css"),
        ("/console.js", "text/javascript"),
        ("/metrics", "text/plain"),
    ] {
        let file = get(address, path);
        assert!(file.contains(&format!("\r\nContent-Type: {content_type};")), "{path}: {file}");
    }
    let history = get(address, "/history.json?span=now");
    assert!(history.contains("\r\nContent-Type: application/json\r\n"), "{history}");
    assert!(history.contains("\"totals\":[1],\"latency_totals\":[[]],\"rows\":[]}"), "{history}");
    assert!(get(address, "/history.json?span=week").starts_with("HTTP/1.1 400 "));
    let (_admin, address) = start(Fixed::default());
    for path in ["/", "/console.js", "/history.json"] {
        assert!(get(address, path).starts_with("HTTP/1.1 404 "), "{path}");
    }
}

#[test]
fn unix_socket_is_served_and_stale_one_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("admin");
    let address = format!("unix:{}", path.display()).parse().unwrap();
    // The second bind replaces the stale socket file of the first endpoint.
    for _ in 0..2 {
        let admin = Admin::bind(&address, Fixed::default()).unwrap();
        assert_eq!(*admin.address(), address);
        let mut client = UnixStream::connect(&path).unwrap();
        send(&mut client, HEALTH);
        assert!(read_until(&mut client, OK).starts_with("HTTP/1.1 200 OK\r\n"));
    }
}

#[test]
fn drop_closes_connections_and_listener() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("admin");
    let address = format!("unix:{}", path.display()).parse().unwrap();
    let admin = Admin::bind(&address, Fixed::default()).unwrap();
    let mut client = UnixStream::connect(&path).unwrap();
    send(&mut client, HEALTH);
    read_until(&mut client, OK);
    assert!(Admin::bind(&address, Fixed::default()).is_err(), "the address is in use");
    drop(admin);
    assert_eq!(read_to_end(&mut client), "");
    assert!(UnixStream::connect(&path).is_err());
}
