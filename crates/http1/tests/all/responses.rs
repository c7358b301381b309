//! Tests parsing of response heads: valid heads, and heads that a gateway must not forward.

use haul_http1::{
    Field, Framing, HeadLimits, HttpError, MethodKind, Response, Version, parse_response,
};

fn parse(head: &[u8], method: MethodKind) -> Result<Option<Response<'_>>, HttpError> {
    parse_response(head, &HeadLimits::default(), method)
}

fn parse_valid(head: &str) -> Response<'_> {
    parse(head.as_bytes(), MethodKind::Other).unwrap().unwrap()
}

#[test]
fn typical_response_is_parsed() {
    let head = "HTTP/1.1 404 Not here\r\nServer: b\r\nContent-Length:  5 \r\n\r\nhello";
    let response = parse_valid(head);
    assert_eq!((response.status, response.reason), (404, "Not here"));
    assert_eq!((response.version, response.keep_alive), (Version::Http11, true));
    assert_eq!((response.framing, response.content_length), (Framing::Length(5), Some(5)));
    assert_eq!(response.fields.first("server"), Some(&b"b"[..]));
    assert_eq!(&head[response.head_bytes..], "hello");
}

#[test]
fn reason_phrase_is_optional() {
    for (line, reason) in [
        ("HTTP/1.1 200", ""),
        ("HTTP/1.1 200 ", ""),
        ("HTTP/1.1 200 All is\twell", "All is\twell"),
        ("HTTP/1.0 200 OK", "OK"),
        ("HTTP/1.1 200 \u{e9}", ""),
    ] {
        let head = format!("{line}\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(parse_valid(&head).reason, reason, "{line}");
    }
}

#[test]
fn framing_depends_on_method_status_and_fields() {
    use Framing::{Chunked, Length, UntilClose};
    let chunked = "Transfer-Encoding: chunked\r\n";
    for (status, fields, method, framing) in [
        (200, "Content-Length: 5\r\n", MethodKind::Other, Length(5)),
        (200, chunked, MethodKind::Other, Chunked),
        (200, "", MethodKind::Other, UntilClose),
        (500, "", MethodKind::Other, UntilClose),
        (200, "Content-Length: 5\r\n", MethodKind::Head, Length(0)),
        (200, chunked, MethodKind::Head, Length(0)),
        (200, "", MethodKind::Head, Length(0)),
        (100, "Content-Length: 5\r\n", MethodKind::Other, Length(0)),
        (101, "", MethodKind::Other, Length(0)),
        (103, chunked, MethodKind::Other, Length(0)),
        (204, "Content-Length: 5\r\n", MethodKind::Other, Length(0)),
        (204, chunked, MethodKind::Other, Length(0)),
        (304, "Content-Length: 5\r\n", MethodKind::Other, Length(0)),
        (304, "", MethodKind::Other, Length(0)),
        (205, "", MethodKind::Other, UntilClose),
    ] {
        let head = format!("HTTP/1.1 {status} x\r\n{fields}\r\n");
        let response = parse(head.as_bytes(), method).unwrap().unwrap();
        assert_eq!(response.framing, framing, "{status} {fields} {method:?}");
        assert_eq!(response.keep_alive, framing != UntilClose, "{status} {fields} {method:?}");
    }
    assert_eq!(parse_valid("HTTP/1.1 304 x\r\nContent-Length: 5\r\n\r\n").content_length, Some(5));
}

#[test]
fn interim_responses_and_protocol_switches_are_distinguished() {
    for (status, is_interim, switches) in [
        (100, true, [false, false]),
        (101, false, [true, true]),
        (102, true, [false, false]),
        (199, true, [false, false]),
        (200, false, [false, true]),
        (299, false, [false, true]),
        (407, false, [false, false]),
    ] {
        let head = format!("HTTP/1.1 {status} x\r\n\r\n");
        let response = parse_valid(&head);
        assert_eq!(response.is_interim(), is_interim, "{status}");
        let actual = [MethodKind::Other, MethodKind::Connect]
            .map(|method| response.is_protocol_switch(method));
        assert_eq!(actual, switches, "{status}");
    }
}

#[test]
fn keep_alive_follows_version_and_connection_field() {
    for (version, fields, keep_alive) in [
        ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.0", "", false),
        ("1.0", "Connection: keep-alive\r\n", true),
    ] {
        let head = format!("HTTP/{version} 200 x\r\nContent-Length: 0\r\n{fields}\r\n");
        assert_eq!(parse_valid(&head).keep_alive, keep_alive, "{version} {fields}");
    }
}

#[test]
fn blanks_before_the_colon_are_not_part_of_a_name() {
    for name in ["Content-Length ", "content-length \t ", "CONTENT-LENGTH\t"] {
        let head = format!("HTTP/1.1 200 x\r\n{name}: 5\r\nX: 1\r\n\r\n");
        let response = parse_valid(&head);
        assert_eq!(response.framing, Framing::Length(5), "{name:?}");
        assert_eq!(response.fields.first("content-length"), Some(&b"5"[..]), "{name:?}");
        let is_bare = |field: Field<'_>| field.name.iter().all(u8::is_ascii_graphic);
        assert!(response.fields.into_iter().all(is_bare), "{name:?}");
    }
}

#[test]
fn ambiguous_or_invalid_responses_are_rejected() {
    for head in [
        &b"HTTP/1.1 200 x\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n"[..],
        b"HTTP/1.1 200 x\r\nContent-Length: 5, 5\r\n\r\n",
        b"HTTP/1.1 200 x\r\nContent-Length: +5\r\n\r\n",
        b"HTTP/1.1 200 x\r\nContent-Length:\r\n\r\n",
        b"HTTP/1.1 200 x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 x\r\nTransfer-Encoding: chunked, gzip\r\n\r\n",
        b"HTTP/1.1 200 x\r\nTransfer-Encoding: identity\r\n\r\n",
        b"HTTP/1.0 200 x\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 304 x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 x\r\nContent-Length : 5\r\nContent-Length: 6\r\n\r\n",
        b"HTTP/1.1 200 x\r\nContent-Length : 5\r\nTransfer-Encoding\t: chunked\r\n\r\n",
        b"HTTP/1.1 200 x\r\nContent Length: 5\r\n\r\n",
        b"HTTP/1.1 200 x\r\n Content-Length: 5\r\n\r\n",
        b"HTTP/1.1 200 x\r\nContent-Length\x0b: 5\r\n\r\n",
        b"HTTP/1.1 200 x\r\n : 5\r\n\r\n",
        b"HTTP/1.1 200 x\r\nX: 1\r\n Content-Length: 5\r\n\r\n",
        b"HTTP/1.1 200 x\nContent-Length: 5\r\n\r\n",
        b"HTTP/1.1 200\nContent-Length: 5\r\n\r\n",
        b"HTTP/1.1 200 x\r\nContent-Length: 5\n\r\n",
        b"HTTP/1.1 200 x\r\nContent-Length: 5\r\n\n",
        b"HTTP/1.1 200 x\r\nX: a\rb\r\n\r\n",
        b"HTTP/1.1 200 x\r\nX: a\0b\r\n\r\n",
        b"HTTP/1.1 200 a\0b\r\n\r\n",
        b"HTTP/1.1 099 x\r\n\r\n",
        b"HTTP/1.1 600 x\r\n\r\n",
        b"HTTP/1.1 20 x\r\n\r\n",
        b"HTTP/1.1 2000 x\r\n\r\n",
        b"HTTP/1.1  200 x\r\n\r\n",
        b"HTTP/2.0 200 x\r\n\r\n",
        b"HTTP/1.2 200 x\r\n\r\n",
        b"ICY 200 OK\r\n\r\n",
        b"RTSP/1.0 200 OK\r\n\r\n",
        b"\r\nHTTP/1.1 200 x\r\n\r\n",
        b"\nHTTP/1.1 200 x\r\n\r\n",
    ] {
        let text = String::from_utf8_lossy(head);
        assert!(parse(head, MethodKind::Other).is_err(), "{text}");
        let accepted = (0..head.len())
            .find(|bytes| matches!(parse(&head[..*bytes], MethodKind::Other), Ok(Some(_))));
        assert_eq!(accepted, None, "{text}");
    }
}

#[test]
fn incomplete_response_is_none() {
    let head = "HTTP/1.1 200 x y\r\nContent-Length: 5\r\nX:\r\nY: \t1 2\r\n\r\n";
    for bytes in 0..head.len() {
        assert!(parse(&head.as_bytes()[..bytes], MethodKind::Other).unwrap().is_none(), "{bytes}");
    }
    assert_eq!(parse_valid(head).head_bytes, head.len());
}

#[test]
fn response_head_limits_are_exact() {
    let limits = HeadLimits { head_bytes_max: 60, fields_max: 2, ..HeadLimits::default() };
    let status = |head: String| {
        parse_response(head.as_bytes(), &limits, MethodKind::Other)
            .map_err(|error| error.status)
            .err()
    };
    assert_eq!(status(format!("HTTP/1.1 200 x\r\nX: {}\r\n\r\n", "y".repeat(37))), None);
    assert_eq!(status(format!("HTTP/1.1 200 x\r\nX: {}\r\n\r\n", "y".repeat(38))), Some(431));
    assert_eq!(status(format!("HTTP/1.1 200 x\r\nX: {}", "y".repeat(50))), Some(431));
    assert_eq!(status("HTTP/1.1 200 x\r\nX: y\r\nX: y\r\nX: y\r\n\r\n".to_owned()), Some(431));
}
