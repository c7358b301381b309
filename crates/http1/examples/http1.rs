//! Parses the head of a request, and writes the head of a response.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;

use haul_http1::{Framing, HeadLimits, HeadWriter, parse_request};

fn main() -> Result<(), Box<dyn Error>> {
    let received = b"GET /a?b HTTP/1.1\r\nHost: example\r\nRange: bytes=0-9\r\n\r\nGET /next";
    let request = parse_request(received, &HeadLimits::default())?.ok_or("it is incomplete")?;
    assert_eq!((request.method, request.target.path()), ("GET", "/a?b"));
    assert_eq!((request.host, request.framing), (Some("example"), Framing::Length(0)));
    assert_eq!(request.fields.first("range"), Some(&b"bytes=0-9"[..]));
    assert_eq!(&received[request.head_bytes..], b"GET /next");

    // Two parsers could frame this message differently, so it is refused.
    let smuggled = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n";
    let refused = parse_request(smuggled, &HeadLimits::default());
    println!("{}", refused.err().ok_or("an ambiguous message was accepted")?);

    let mut out = Vec::new();
    let mut head = HeadWriter::response(&mut out, 204);
    head.field("Server", b"haul");
    head.end()?;
    assert_eq!(out, b"HTTP/1.1 204 No Content\r\nServer: haul\r\n\r\n");
    Ok(())
}
