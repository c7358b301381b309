//! Malformed and ambiguous heads: each is refused, and nothing after it is answered.

use std::io::{Read, Write};

use haul_testing::{Transport, over};

use crate::client::Running;

#[path = "../../../http1/tests/all/corpus.rs"]
mod corpus;

over!(Plain Inherited Tls => (
    hostile_heads_are_refused_with_all_bytes_after_them,
    hostile_bodies_store_nothing,
));

/// Sends bytes, and returns everything that is received until the server closes the connection.
fn exchange(server: &Running, bytes: &[u8]) -> String {
    let mut client = server.s3.connect();
    // The server may close before it has received everything.
    drop(client.write_all(bytes));
    drop(client.shutdown_write());
    let mut received = Vec::new();
    drop(client.read_to_end(&mut received));
    String::from_utf8_lossy(&received).into_owned()
}

fn hostile_heads_are_refused_with_all_bytes_after_them(transport: Transport) {
    let server = Running::over(transport);
    assert_eq!(server.s3.put("/bucket/a", b"secret").status, 200);
    let smuggled = b"6\r\nGET /bucket/a HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let fields =
        corpus::HOSTILE_FIELDS.iter().map(|(why, fields)| (why, corpus::post(fields), 400));
    let hosts = corpus::HOSTILE_HOSTS.iter().map(|(why, host)| {
        let head = [b"GET /bucket/a HTTP/1.1\r\nHost: ", *host, b"\r\n\r\n"].concat();
        (why, head, 400)
    });
    let lines = corpus::HOSTILE_LINES
        .iter()
        .map(|(why, line, status)| (why, corpus::with_line(line), *status));
    for (why, head, status) in fields.chain(hosts).chain(lines) {
        let received = exchange(&server, &[&head[..], smuggled].concat());
        assert!(received.starts_with(&format!("HTTP/1.1 {status} ")), "{why}: {received}");
        assert_eq!(received.matches("HTTP/1.1 ").count(), 1, "{why}: {received}");
        assert!(!received.contains("secret"), "{why}: {received}");
    }
}

fn hostile_bodies_store_nothing(transport: Transport) {
    let server = Running::over(transport);
    let head = b"PUT /bucket/k HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (why, body) in corpus::HOSTILE_BODIES {
        let received = exchange(&server, &[&head[..], body].concat());
        assert!(received.starts_with("HTTP/1.1 4"), "{why}: {received}");
        assert_eq!(received.matches("HTTP/1.1 ").count(), 1, "{why}: {received}");
        assert_eq!(server.s3.get("/bucket/k").status, 404, "{why}");
    }
}
