//! Tests parsing of request heads that are valid, hostile, too large or split.

use haul_http1::{Framing, HeadLimits, MethodKind, Target, Version, parse_request};

use crate::corpus::{HOSTILE_FIELDS, HOSTILE_HOSTS, HOSTILE_LINES, post, with_line};
use crate::{error_status, parse, parse_valid};

#[test]
fn typical_request_is_parsed() {
    let head = "GET /a/b?c=%20d HTTP/1.1\r\nhOST:\texample.org:8080 \r\nEmpty:\r\n\r\nrest";
    let request = parse_valid(head);
    assert_eq!(request.method, "GET");
    assert_eq!(request.target, Target::Origin("/a/b?c=%20d"));
    assert_eq!(request.version, Version::Http11);
    assert_eq!(request.host, Some("example.org:8080"));
    assert_eq!(request.framing, Framing::Length(0));
    assert!(request.keep_alive && !request.expect_continue && !request.is_upgrade);
    assert_eq!(request.fields.count(), 2);
    assert_eq!(request.fields.first("empty"), Some(&b""[..]));
    assert_eq!(&head[request.head_bytes..], "rest");
    assert_eq!(request.method_kind(), MethodKind::Other);
}

#[test]
fn one_empty_line_before_a_request_is_skipped() {
    let head = "\r\nHEAD / HTTP/1.1\r\nHost: a\r\n\r\nrest";
    let request = parse_valid(head);
    assert_eq!((request.method, request.method_kind()), ("HEAD", MethodKind::Head));
    assert_eq!(&head[request.head_bytes..], "rest");
    assert_eq!(request.fields.first("Host"), Some(&b"a"[..]));
}

#[test]
fn each_target_form_is_parsed() {
    let absolute = |is_https, authority, path| Target::Absolute { is_https, authority, path };
    for (line, target, host) in [
        ("GET / HTTP/1.1", Target::Origin("/"), "a"),
        ("GET //b/c HTTP/1.1", Target::Origin("//b/c"), "a"),
        ("GET /|\"<>\\^`{} HTTP/1.1", Target::Origin("/|\"<>\\^`{}"), "a"),
        ("OPTIONS * HTTP/1.1", Target::Asterisk, "a"),
        ("OPTIONS /b HTTP/1.1", Target::Origin("/b"), "a"),
        ("CONNECT b:443 HTTP/1.1", Target::Authority("b:443"), "b:443"),
        ("CONNECT [::1]:443 HTTP/1.1", Target::Authority("[::1]:443"), "[::1]:443"),
        ("GET http://b HTTP/1.1", absolute(false, "b", ""), "b"),
        ("GET http://b/c?d HTTP/1.1", absolute(false, "b", "/c?d"), "b"),
        ("GET HTTPS://b:8443?d HTTP/1.1", absolute(true, "b:8443", "?d"), "b:8443"),
        ("GET http://[2001:db8::1]:80/ HTTP/1.1", absolute(false, "[2001:db8::1]:80", "/"), ""),
    ] {
        let head = format!("{line}\r\nHost: a\r\n\r\n");
        let request = parse_valid(&head);
        assert_eq!(request.target, target, "{line}");
        assert!(host.is_empty() || request.host == Some(host), "{line}: {:?}", request.host);
    }
}

#[test]
fn host_is_one_name_or_address_with_optional_port() {
    for host in ["a", "a.b:80", "127.0.0.1", "[::1]", "[::1]:0", "xn--bcher-kva.example", "a_b"] {
        let head = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(parse_valid(&head).host, Some(host));
    }
    for (why, host) in HOSTILE_HOSTS {
        let head = [b"GET / HTTP/1.1\r\nHost: ", *host, b"\r\n\r\n"].concat();
        assert_eq!(error_status(&head), Some(400), "{why}");
        let head = [b"GET http://b/ HTTP/1.1\r\nHost: ", *host, b"\r\n\r\n"].concat();
        assert_eq!(error_status(&head), Some(400), "{why}, with an absolute target");
    }
    assert_eq!(error_status(b"GET / HTTP/1.1\r\n\r\n"), Some(400));
    assert_eq!(error_status(b"GET http://b/ HTTP/1.1\r\n\r\n"), Some(400));
    assert_eq!(error_status(b"GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n"), Some(400));
    assert_eq!(parse_valid("GET / HTTP/1.0\r\n\r\n").host, None);
}

#[test]
fn framing_follows_content_length_or_transfer_encoding() {
    for (fields, framing) in [
        ("", Framing::Length(0)),
        ("Content-Length: 0\r\n", Framing::Length(0)),
        ("content-length:6\r\n", Framing::Length(6)),
        ("Content-Length: \t 6 \t \r\n", Framing::Length(6)),
        ("Content-Length: 9223372036854775807\r\n", Framing::Length(i64::MAX as u64)),
        ("Transfer-Encoding: chunked\r\n", Framing::Chunked),
        ("TRANSFER-ENCODING:Chunked \r\n", Framing::Chunked),
        ("TE: trailers\r\nX-Transfer-Encoding: gzip\r\n", Framing::Length(0)),
    ] {
        let head = format!("PUT / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        assert_eq!(parse_valid(&head).framing, framing, "{fields}");
    }
    let coded = |version, value| {
        let head = format!("PUT / HTTP/{version}\r\nHost: a\r\nTransfer-Encoding: {value}\r\n\r\n");
        error_status(head.as_bytes())
    };
    assert_eq!(coded("1.1", "gzip, chunked"), Some(501));
    assert_eq!(coded("1.1", "deflate,\tX-Gzip,chunked"), Some(501));
    assert_eq!(coded("1.1", "gzip, , chunked"), Some(400));
    assert_eq!(coded("1.0", "chunked"), Some(400));
}

#[test]
fn hostile_heads_are_rejected() {
    for (why, fields) in HOSTILE_FIELDS {
        assert_eq!(error_status(&post(fields)), Some(400), "{why}");
    }
    for (why, line, status) in HOSTILE_LINES {
        assert_eq!(error_status(&with_line(line)), Some(*status), "{why}");
    }
}

#[test]
fn rejected_head_stays_rejected_as_bytes_are_appended() {
    let heads = HOSTILE_FIELDS.iter().map(|(why, fields)| (why, post(fields)));
    let lines = HOSTILE_LINES.iter().map(|(why, line, _)| (why, with_line(line)));
    for (why, head) in heads.chain(lines) {
        let first = (0..=head.len()).find(|bytes| parse(&head[..*bytes]).is_err());
        let first = first.unwrap_or_else(|| panic!("{why}"));
        for bytes in 0..=head.len() {
            let parsed = parse(&head[..bytes]);
            assert_eq!(parsed.is_err(), bytes >= first, "{why}: {bytes} bytes");
            assert!(parsed.ok().flatten().is_none(), "{why}: accepted at {bytes}");
        }
    }
}

#[test]
fn incomplete_head_is_none() {
    for head in [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "\r\nPOST http://b:80/c HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\nX:\r\nY: \t1 2\r\n\r\n",
        "OPTIONS * HTTP/1.0\r\n\r\n",
    ] {
        for bytes in 0..head.len() {
            assert!(parse(&head.as_bytes()[..bytes]).unwrap().is_none(), "{bytes} of {head}");
        }
        assert_eq!(parse_valid(head).head_bytes, head.len());
    }
}

#[test]
fn keep_alive_follows_version_and_connection_field() {
    for (version, fields, keep_alive) in [
        ("1.1", "", true),
        ("1.1", "Connection: keep-alive\r\n", true),
        ("1.1", "Connection: Close\r\n", false),
        ("1.1", "Connection: keep-alive, close\r\n", false),
        ("1.1", "Connection: x-a\r\nConnection: ,close ,\r\n", false),
        ("1.1", "Connection: closed\r\n", true),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
        ("1.0", "Connection: keep-alive, close\r\n", false),
        ("1.0", "Proxy-Connection: keep-alive\r\n", false),
    ] {
        let head = format!("GET / HTTP/{version}\r\nHost: a\r\n{fields}\r\n");
        assert_eq!(parse_valid(&head).keep_alive, keep_alive, "{version} {fields}");
    }
}

#[test]
fn upgrade_requires_both_fields_and_http_1_1() {
    for (version, fields, is_upgrade) in [
        ("1.1", "Connection: Upgrade\r\nUpgrade: websocket\r\n", true),
        ("1.1", "Upgrade: websocket\r\nConnection: keep-alive, upgrade\r\n", true),
        ("1.1", "Upgrade: websocket\r\n", false),
        ("1.1", "Connection: upgrade\r\n", false),
        ("1.0", "Connection: upgrade\r\nUpgrade: websocket\r\n", false),
    ] {
        let head = format!("GET / HTTP/{version}\r\nHost: a\r\n{fields}\r\n");
        assert_eq!(parse_valid(&head).is_upgrade, is_upgrade, "{version} {fields}");
    }
}

#[test]
fn only_100_continue_is_accepted_in_expect() {
    let expecting = |version, fields| format!("PUT / HTTP/{version}\r\nHost: a\r\n{fields}\r\n");
    assert!(parse_valid(&expecting("1.1", "Expect: 100-Continue\r\n")).expect_continue);
    assert!(!parse_valid(&expecting("1.0", "Expect: 100-continue\r\n")).expect_continue);
    for fields in [
        "Expect: 200-ok\r\n",
        "Expect:\r\n",
        "Expect: 100-continue, a\r\n",
        "Expect: 100-continue\r\nExpect: 100-continue\r\n",
    ] {
        assert_eq!(error_status(expecting("1.1", fields).as_bytes()), Some(417), "{fields}");
    }
}

#[test]
fn head_limits_are_exact() {
    let limits = HeadLimits { head_bytes_max: 200, target_bytes_max: 50, fields_max: 5 };
    let error_status = |head: &str| {
        let parsed = parse_request(head.as_bytes(), &limits);
        parsed
            .map(|request| request.map(|request| request.head_bytes))
            .map_err(|error| error.status)
    };
    let with_fields =
        |count: usize| format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(count - 1));
    assert!(error_status(&with_fields(5)).unwrap().is_some());
    assert_eq!(error_status(&with_fields(6)), Err(431));

    let with_target =
        |bytes: usize| format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(bytes - 1));
    assert!(error_status(&with_target(50)).unwrap().is_some());
    assert_eq!(error_status(&with_target(51)), Err(414));
    assert_eq!(error_status(&with_target(500)), Err(414));
    assert_eq!(error_status(&with_target(51)[..54]), Ok(None), "the target may still end");
    assert_eq!(error_status(&with_target(51)[..55]), Err(414), "before the head is complete");

    let with_value = |bytes: usize| {
        let head = |value: String| format!("GET / HTTP/1.1\r\nHost: a\r\nX: {value}\r\n\r\n");
        let others = head(String::new()).len();
        head("y".repeat(bytes - others))
    };
    assert_eq!(error_status(&with_value(200)), Ok(Some(200)));
    assert_eq!(error_status(&with_value(201)), Err(431));
    assert_eq!(error_status(&with_value(201)[..199]), Ok(None));
    assert_eq!(error_status(&with_value(300)[..200]), Err(431), "before the head is complete");
    assert_eq!(
        error_status(&(with_value(200) + &"z".repeat(500))),
        Ok(Some(200)),
        "the body is not counted"
    );
    assert_eq!(error_status(&"A".repeat(33)), Err(501));
}

#[test]
fn default_limits_reject_floods() {
    let head = |count: usize| {
        format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(count - 1)).into_bytes()
    };
    assert_eq!(error_status(&head(100)), None);
    assert_eq!(error_status(&head(101)), Some(431));
    let flood = "GET / HTTP/1.1\r\n".to_owned() + &"X: y\r\n".repeat(10_000);
    assert_eq!(error_status(flood.as_bytes()), Some(431));
    assert_eq!(error_status(format!("GET /{}", "a".repeat(10_000)).as_bytes()), Some(414));
    assert_eq!(error_status("\r\n".repeat(10_000).as_bytes()), Some(400));
}
