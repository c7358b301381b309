//! Event targets that are down, slow or hostile.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

use haul_testing::eventually;

use crate::events::Site;

/// Answers one message with a body that does not end. Returns the bytes that were sent until the
/// connection was closed.
fn answer_without_end(listener: &TcpListener, status: u16) -> u64 {
    let mut reader = BufReader::new(listener.accept().unwrap().0);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line).unwrap() > 2 {
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    let mut stream = reader.into_inner();
    let head = format!("HTTP/1.1 {status} Status\r\ntransfer-encoding: chunked\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let chunk = [&b"10000\r\n"[..], &[b'x'; 0x10000], b"\r\n"].concat();
    let mut sent = 0;
    while stream.write_all(&chunk).is_ok() && sent < 1 << 30 {
        sent += chunk.len() as u64;
    }
    sent
}

#[test]
fn response_without_an_end_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let site = Site::with(|webhook| webhook.url = url);
    site.notify();
    site.put("/bucket/key", b"");
    // What the buffers of the kernel take, and no more.
    for status in [500, 200] {
        let sent = answer_without_end(&listener, status);
        assert!(sent < 64 << 20, "{sent} bytes");
    }
    eventually("the event is delivered", || site.status("delivered_events") == 1);
    assert_eq!(site.status("failures"), 1);
}
