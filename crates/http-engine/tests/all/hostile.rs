//! Requests that no client should send.

use std::io::Write;

use haul_testing::{Transport, over};

use crate::server::{Server, rest};

#[path = "../../../http1/tests/all/corpus.rs"]
mod corpus;

over!(Plain Inherited Tls => (
    hostile_heads_are_refused_and_nothing_behind_them_is_answered,
    hostile_bodies_never_look_complete,
));

fn hostile_heads_are_refused_and_nothing_behind_them_is_answered(transport: Transport) {
    let server = Server::over(transport);
    let smuggled = b"6\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n";
    let fields =
        corpus::HOSTILE_FIELDS.iter().map(|(why, fields)| (why, corpus::post(fields), 400));
    let hosts = corpus::HOSTILE_HOSTS.iter().map(|(why, host)| {
        let head = [b"GET / HTTP/1.1\r\nHost: ", *host, b"\r\n\r\n"].concat();
        (why, head, 400)
    });
    let lines = corpus::HOSTILE_LINES
        .iter()
        .map(|(why, line, status)| (why, corpus::with_line(line), *status));
    for (why, head, status) in fields.chain(hosts).chain(lines) {
        let received = server.exchange(&[&head[..], smuggled].concat());
        assert!(received.starts_with(&format!("HTTP/1.1 {status} ")), "{why}: {received}");
        assert!(received.contains("connection: close\r\n"), "{why}: {received}");
        assert_eq!(received.matches("HTTP/1.1 ").count(), 1, "{why}: {received}");
    }
}

fn hostile_bodies_never_look_complete(transport: Transport) {
    let server = Server::over(transport);
    let head = b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (why, body) in corpus::HOSTILE_BODIES {
        let mut client = server.client();
        client.write_all(&[&head[..], body].concat()).unwrap();
        client.shutdown_write().unwrap();
        let received = rest(&mut client);
        assert!(received.starts_with("HTTP/1.1 400 "), "{why}: {received}");
        assert_eq!(received.matches("HTTP/1.1 ").count(), 1, "{why}: {received}");
    }
}
