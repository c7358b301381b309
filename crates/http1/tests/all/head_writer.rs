//! Tests that a `HeadWriter` writes either exactly one head or nothing for any input.

use haul_http1::{
    Date, HeadLimits, HeadWriter, InvalidHead, MethodKind, Target, parse_request, parse_response,
    reason_phrase,
};
use proptest::prelude::*;
use std::time::UNIX_EPOCH;

fn response(fields: &[(&[u8], &[u8])]) -> Result<Vec<u8>, InvalidHead> {
    let mut out = b"before".to_vec();
    let mut head = HeadWriter::response(&mut out, 200);
    for (name, value) in fields {
        head.field(name, value);
    }
    let result = head.end();
    assert!(result.is_ok() || out == b"before", "an invalid head is removed");
    result.map(|()| out.split_off(6))
}

fn request(method: &str, target: &[&str]) -> Result<Vec<u8>, InvalidHead> {
    let mut out = Vec::new();
    HeadWriter::request(&mut out, method, target).end().map(|()| out)
}

#[test]
fn heads_are_written_byte_for_byte() {
    let mut out = Vec::new();
    let mut head = HeadWriter::request(&mut out, "PUT", &["/", "a?b"]);
    head.field("Host", b"c")
        .field_parts("Via", &[b"1.1", b" ", b"haul"])
        .number("Content-Length", 0);
    head.end().unwrap();
    let mut head = HeadWriter::response_with_reason(&mut out, 299, "Any words");
    head.date("Date", &Date::of(UNIX_EPOCH)).number("Content-Length", u64::MAX);
    head.end().unwrap();
    let expected = "PUT /a?b HTTP/1.1\r\nHost: c\r\nVia: 1.1 haul\r\nContent-Length: 0\r\n\r\n\
                    HTTP/1.1 299 Any words\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\
                    Content-Length: 18446744073709551615\r\n\r\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn invalid_bytes_are_rejected() {
    for value in [&b"a\rb"[..], b"a\nb", b"a\r\nSet-Cookie: b", b"\0", b"\x7f", b"\x1b[2J"] {
        assert_eq!(response(&[(b"Name", value)]), Err(InvalidHead), "{value:?}");
    }
    for name in [&b""[..], b"a b", b"a:", b"a\r\nb", b"a\0", b"\xe9"] {
        assert_eq!(response(&[(name, b"value")]), Err(InvalidHead), "{name:?}");
    }
    for (method, target) in
        [("G T", "/"), ("", "/"), ("GET\r\n", "/"), ("GET", ""), ("GET", "/a b"), ("GET", "/\r\n")]
    {
        assert_eq!(request(method, &[target]), Err(InvalidHead), "{method} {target}");
    }
    let mut out = Vec::new();
    assert_eq!(HeadWriter::response_with_reason(&mut out, 200, "a\r\nb").end(), Err(InvalidHead));
    assert_eq!(HeadWriter::response(&mut out, 99).end(), Err(InvalidHead));
    assert!(out.is_empty());
}

#[test]
fn unfinished_head_is_removed() {
    let mut out = b"before".to_vec();
    HeadWriter::response(&mut out, 200).field("A", b"b");
    assert_eq!(out, b"before");
}

#[test]
fn each_status_in_use_has_a_reason_phrase() {
    let statuses = [400, 408, 411, 413, 414, 417, 431, 501, 502, 503, 504, 505];
    assert_eq!(statuses.iter().find(|status| reason_phrase(**status).is_empty()), None);
}

/// Parses and re-writes a request, as a gateway does.
fn rewrite(received: &[u8]) -> Option<Vec<u8>> {
    let request = parse_request(received, &HeadLimits::default()).ok().flatten()?;
    let mut out = Vec::new();
    let target = match request.target {
        Target::Absolute { is_https, authority, path } => {
            [if is_https { "https://" } else { "http://" }, authority, path].concat()
        }
        Target::Origin(target) | Target::Authority(target) => target.to_owned(),
        Target::Asterisk => "*".to_owned(),
    };
    let mut head = HeadWriter::request(&mut out, request.method, &[&target]);
    for field in request.fields {
        head.field(field.name, field.value);
    }
    head.end().expect("a parsed head can be written");
    Some(out)
}

/// Formats all properties of a parsed head except byte positions.
fn describe(head: &[u8]) -> String {
    let request = parse_request(head, &HeadLimits::default()).unwrap().unwrap();
    let fields: Vec<_> = request.fields.into_iter().map(|one| (one.name, one.value)).collect();
    format!(
        "{} {:?} {:?} {:?} {} {} {fields:?}",
        request.method,
        request.target,
        request.host,
        request.framing,
        request.expect_continue,
        request.is_upgrade
    )
}

fn field() -> impl Strategy<Value = String> {
    prop_oneof![
        "[A-Za-z-]{1,8}: ?[ -~\t]{0,12}",
        "(Content-Length|content_length): ?[0-9+ ]{0,3}",
        "Transfer-Encoding: ?(chunked|gzip|,| ){0,3}",
        "Host: [a-c:,]{0,4}",
        "(Connection|Upgrade|Expect): ?(close|upgrade|100-continue|,|a){0,3}",
        "[ -~\r\n\t\0]{0,10}",
    ]
}

fn request_like_bytes() -> impl Strategy<Value = Vec<u8>> {
    let line = "(GET|POST|OPTIONS|CONNECT|g|)( | |  )(/|/a|\\*|http://b/c|b:80|[ -~]{0,4})( | |\t)HTTP/1\\.[01]";
    let end = prop_oneof![8 => Just("\r\n"), 1 => Just("\n"), 1 => Just("\r")];
    let lines = prop::collection::vec((field(), end), 0..5);
    (line, lines, any::<bool>()).prop_map(|(line, lines, has_host)| {
        let mut head = line + "\r\n";
        head += if has_host { "Host: a\r\n" } else { "" };
        for (field, end) in lines {
            head += &(field + end);
        }
        (head + "\r\n").into_bytes()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn arbitrary_bytes_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let limits = HeadLimits::default();
        if let Ok(Some(request)) = parse_request(&bytes, &limits) {
            prop_assert!(request.head_bytes <= bytes.len());
        }
        if let Ok(Some(response)) = parse_response(&bytes, &limits, MethodKind::Other) {
            prop_assert!(response.head_bytes <= bytes.len());
        }
    }

    #[test]
    fn rewritten_head_is_equivalent_and_has_one_end(received in request_like_bytes()) {
        let Some(written) = rewrite(&received) else { return Ok(()) };
        let version = parse_request(&received, &HeadLimits::default()).unwrap().unwrap().version;
        prop_assume!(version == haul_http1::Version::Http11);
        prop_assert_eq!(describe(&received), describe(&written));
        let ends = written.windows(4).filter(|four| four == b"\r\n\r\n").count();
        prop_assert_eq!(ends, 1);
        prop_assert!(written.ends_with(b"\r\n\r\n"));
        let lines = written.iter().filter(|byte| **byte == b'\n').count();
        let crs = written.iter().filter(|byte| **byte == b'\r').count();
        let fields = parse_request(&written, &HeadLimits::default()).unwrap().unwrap().fields;
        prop_assert_eq!((lines, crs), (fields.count() + 2, fields.count() + 2));
    }

    #[test]
    fn split_head_parses_like_complete_head(received in request_like_bytes()) {
        let limits = HeadLimits::default();
        let whole = parse_request(&received, &limits);
        let first = (0..=received.len())
            .map(|bytes| parse_request(&received[..bytes], &limits))
            .find(|parsed| !matches!(parsed, Ok(None)));
        match (whole, first) {
            (Ok(Some(whole)), Some(Ok(Some(first)))) => {
                prop_assert_eq!(whole.head_bytes, first.head_bytes);
            }
            (Err(_), Some(Err(_))) | (Ok(None), None) => {}
            (whole, first) => prop_assert!(false, "{:?} and {:?}", whole, first),
        }
    }

    #[test]
    fn written_field_parses_as_one_field(
        name in prop::collection::vec(any::<u8>(), 0..6),
        value in prop::collection::vec(any::<u8>(), 0..12),
    ) {
        let Ok(head) = response(&[(&name, &value)]) else { return Ok(()) };
        let is_named = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
        prop_assume!(!is_named("te") && !is_named("upgrade"));
        let response = parse_response(&head, &HeadLimits::default(), MethodKind::Other).unwrap().unwrap();
        prop_assert_eq!((response.fields.count(), response.head_bytes), (1, head.len()));
        prop_assert_eq!(response.fields.into_iter().next().unwrap().value, value.trim_ascii());
    }
}
