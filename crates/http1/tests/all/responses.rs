//! Heads of responses: right ones, and such that a gateway must not pass on.

use haul_http1::{Asked, Framing, HeadLimits, Refused, Response, Version, parse_response};

fn parsed(head: &[u8], asked: Asked) -> Result<Option<Response<'_>>, Refused> {
    parse_response(head, &HeadLimits::default(), asked)
}

fn right(head: &str) -> Response<'_> {
    parsed(head.as_bytes(), Asked::Other).unwrap().unwrap()
}

#[test]
fn a_usual_response_is_read() {
    let head = "HTTP/1.1 404 Not here\r\nServer: b\r\nContent-Length:  5 \r\n\r\nhello";
    let response = right(head);
    assert_eq!((response.status, response.reason), (404, "Not here"));
    assert_eq!((response.version, response.keep_alive), (Version::Http11, true));
    assert_eq!((response.framing, response.content_length), (Framing::Length(5), Some(5)));
    assert_eq!(response.fields.first("server"), Some(&b"b"[..]));
    assert_eq!(&head[response.head_bytes..], "hello");
}

#[test]
fn words_beside_the_status_may_be_missing_or_any() {
    for (line, words) in [
        ("HTTP/1.1 200", ""),
        ("HTTP/1.1 200 ", ""),
        ("HTTP/1.1 200 All is\twell", "All is\twell"),
        ("HTTP/1.0 200 OK", "OK"),
        ("HTTP/1.1 200 \u{e9}", ""),
    ] {
        let head = format!("{line}\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(right(&head).reason, words, "{line}");
    }
}

#[test]
fn the_end_of_a_response_depends_on_request_status_and_fields() {
    use Framing::{Chunked, Length, UntilClose};
    let chunked = "Transfer-Encoding: chunked\r\n";
    for (status, fields, asked, framing) in [
        (200, "Content-Length: 5\r\n", Asked::Other, Length(5)),
        (200, chunked, Asked::Other, Chunked),
        (200, "", Asked::Other, UntilClose),
        (500, "", Asked::Other, UntilClose),
        (200, "Content-Length: 5\r\n", Asked::Head, Length(0)),
        (200, chunked, Asked::Head, Length(0)),
        (200, "", Asked::Head, Length(0)),
        (100, "Content-Length: 5\r\n", Asked::Other, Length(0)),
        (101, "", Asked::Other, Length(0)),
        (103, chunked, Asked::Other, Length(0)),
        (204, "Content-Length: 5\r\n", Asked::Other, Length(0)),
        (204, chunked, Asked::Other, Length(0)),
        (304, "Content-Length: 5\r\n", Asked::Other, Length(0)),
        (304, "", Asked::Other, Length(0)),
        (205, "", Asked::Other, UntilClose),
    ] {
        let head = format!("HTTP/1.1 {status} x\r\n{fields}\r\n");
        let response = parsed(head.as_bytes(), asked).unwrap().unwrap();
        assert_eq!(response.framing, framing, "{status} {fields} {asked:?}");
        assert_eq!(response.keep_alive, framing != UntilClose, "{status} {fields} {asked:?}");
    }
    assert_eq!(right("HTTP/1.1 304 x\r\nContent-Length: 5\r\n\r\n").content_length, Some(5));
}

#[test]
fn interim_responses_and_switches_are_told_apart() {
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
        let response = right(&head);
        assert_eq!(response.is_interim(), is_interim, "{status}");
        let seen = [Asked::Other, Asked::Connect].map(|asked| response.is_switch(asked));
        assert_eq!(seen, switches, "{status}");
    }
}

#[test]
fn the_connection_is_kept_as_version_and_field_say() {
    for (version, fields, kept) in [
        ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.0", "", false),
        ("1.0", "Connection: keep-alive\r\n", true),
    ] {
        let head = format!("HTTP/{version} 200 x\r\nContent-Length: 0\r\n{fields}\r\n");
        assert_eq!(right(&head).keep_alive, kept, "{version} {fields}");
    }
}

#[test]
fn responses_that_two_may_read_differently_are_refused() {
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
        b"HTTP/1.1 200 x\r\nContent-Length : 5\r\n\r\n",
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
        let shown = String::from_utf8_lossy(head);
        assert!(parsed(head, Asked::Other).is_err(), "{shown}");
        let taken = (0..head.len())
            .find(|bytes| matches!(parsed(&head[..*bytes], Asked::Other), Ok(Some(_))));
        assert_eq!(taken, None, "{shown}");
    }
}

#[test]
fn a_response_in_two_pieces_is_read_once_it_is_whole() {
    let head = "HTTP/1.1 200 x y\r\nContent-Length: 5\r\nX:\r\nY: \t1 2\r\n\r\n";
    for bytes in 0..head.len() {
        assert!(parsed(&head.as_bytes()[..bytes], Asked::Other).unwrap().is_none(), "{bytes}");
    }
    assert_eq!(right(head).head_bytes, head.len());
}

#[test]
fn a_response_is_taken_up_to_its_limits() {
    let limits = HeadLimits { head_bytes_max: 60, fields_max: 2, ..HeadLimits::default() };
    let status = |head: String| {
        parse_response(head.as_bytes(), &limits, Asked::Other)
            .map_err(|refused| refused.status)
            .err()
    };
    assert_eq!(status(format!("HTTP/1.1 200 x\r\nX: {}\r\n\r\n", "y".repeat(37))), None);
    assert_eq!(status(format!("HTTP/1.1 200 x\r\nX: {}\r\n\r\n", "y".repeat(38))), Some(431));
    assert_eq!(status(format!("HTTP/1.1 200 x\r\nX: {}", "y".repeat(50))), Some(431));
    assert_eq!(status("HTTP/1.1 200 x\r\nX: y\r\nX: y\r\nX: y\r\n\r\n".to_owned()), Some(431));
}
