//! Lines that are JSON objects.

use std::io::Write as _;

use super::fields::{LoggedRequest, LoggedResponse, push_address, push_number};

/// A JSON object on one line, for logs. Its fields keep their order, and no value can end the line.
#[derive(Debug)]
pub struct JsonLine(Vec<u8>);

impl JsonLine {
    /// Begins an object with a string.
    #[must_use]
    pub fn new(name: &str, value: &[u8]) -> Self {
        let mut text = Vec::new();
        push_field(&mut text, name, Some(value));
        text[0] = b'{';
        Self(text)
    }

    /// Adds a string, or `null`.
    #[must_use]
    pub fn string(mut self, name: &str, value: Option<&[u8]>) -> Self {
        push_field(&mut self.0, name, value);
        self
    }

    /// Adds a number, or `null`.
    #[must_use]
    pub fn number(mut self, name: &str, value: Option<u64>) -> Self {
        push_name(&mut self.0, name);
        match value {
            Some(number) => push_number(&mut self.0, number),
            None => self.0.extend_from_slice(b"null"),
        }
        self
    }

    /// Ends the object; returns the line with its newline.
    #[must_use]
    pub fn end(mut self) -> Vec<u8> {
        self.0.extend_from_slice(b"}\n");
        self.0
    }
}

/// Appends the fields of a request; `None` if its head was not valid.
pub(super) fn begin(out: &mut Vec<u8>, request: Option<&LoggedRequest<'_>>) {
    let strings = request.map(|request| {
        let LoggedRequest { method, target, protocol, referer, user_agent } = request;
        [Some(*method), Some(target), Some(*protocol), referer.as_deref(), *user_agent]
    });
    let names = ["method", "target", "protocol", "referer", "user_agent"];
    for (name, value) in names.into_iter().zip(strings.unwrap_or_default()) {
        push_field(out, name, value);
    }
}

/// Writes the whole line; `begun` are the fields that [`begin`] wrote.
pub(super) fn end(line: &mut Vec<u8>, begun: &[u8], response: &LoggedResponse<'_>) {
    line.extend_from_slice(b"{\"time\":");
    push_string(line, response.date);
    match response.peer {
        Some(peer) => {
            line.extend_from_slice(b",\"client\":\"");
            push_address(line, peer);
            line.push(b'"');
        }
        None => line.extend_from_slice(b",\"client\":null"),
    }
    push_field(line, "user", response.user);
    line.extend_from_slice(begun);
    let duration_us = u64::try_from(response.duration.as_micros()).unwrap_or(u64::MAX);
    for (name, number) in [
        (&b",\"status\":"[..], u64::from(response.status)),
        (b",\"bytes\":", response.bytes),
        (b",\"duration_us\":", duration_us),
    ] {
        line.extend_from_slice(name);
        push_number(line, number);
    }
    for (name, value) in response.fields {
        push_field(line, name, *value);
    }
    line.extend_from_slice(b"}\n");
}

/// Appends a comma, the name, and the value as a string or `null`.
fn push_field(out: &mut Vec<u8>, name: &str, value: Option<&[u8]>) {
    push_name(out, name);
    match value {
        Some(value) => push_string(out, value),
        None => out.extend_from_slice(b"null"),
    }
}

fn push_name(out: &mut Vec<u8>, name: &str) {
    for part in [",\"", name, "\":"] {
        out.extend_from_slice(part.as_bytes());
    }
}

/// Appends a JSON string. Bytes that are not UTF-8 become U+FFFD, and control characters are
/// escaped, so that a terminal cannot interpret them.
fn push_string(out: &mut Vec<u8>, value: &[u8]) {
    out.push(b'"');
    if value.iter().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\')) {
        out.extend_from_slice(value);
    } else {
        push_escaped(out, value);
    }
    out.push(b'"');
}

fn push_escaped(out: &mut Vec<u8>, value: &[u8]) {
    for chunk in value.utf8_chunks() {
        for char in chunk.valid().chars() {
            match char {
                '"' => out.extend_from_slice(b"\\\""),
                '\\' => out.extend_from_slice(b"\\\\"),
                _ if char.is_control() => {
                    // Writing to memory does not fail.
                    write!(out, "\\u{:04x}", u32::from(char)).unwrap_or_default();
                }
                _ => out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn json_line(
        request: Option<&LoggedRequest<'_>>,
        peer: Option<&str>,
        tier: Option<&str>,
    ) -> String {
        let (mut begun, mut line) = (Vec::new(), Vec::new());
        begin(&mut begun, request);
        let response = LoggedResponse {
            peer: peer.map(|peer| peer.parse().unwrap()),
            user: None,
            date: b"2026-11-21T07:23:14Z",
            status: 206,
            bytes: 10_240,
            duration: Duration::from_micros(1500),
            fields: &[("tier", tier.map(str::as_bytes))],
        };
        end(&mut line, &begun, &response);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn json_lines_are_objects_with_all_fields() {
        let request = LoggedRequest {
            method: b"GET",
            target: b"/a?b".into(),
            protocol: b"HTTP/1.1",
            referer: None,
            user_agent: Some(b"curl/8"),
        };
        assert_eq!(
            json_line(Some(&request), Some("192.0.2.7"), Some("direct")),
            "{\"time\":\"2026-11-21T07:23:14Z\",\"client\":\"192.0.2.7\",\"user\":null,\
             \"method\":\"GET\",\"target\":\"/a?b\",\"protocol\":\"HTTP/1.1\",\"referer\":null,\
             \"user_agent\":\"curl/8\",\"status\":206,\"bytes\":10240,\"duration_us\":1500,\
             \"tier\":\"direct\"}\n"
        );
        let invalid: Value = serde_json::from_str(&json_line(None, None, None)).unwrap();
        for name in ["client", "method", "target", "protocol", "referer", "user_agent", "tier"] {
            assert_eq!(invalid.get(name), Some(&json!(null)), "{name}");
        }
    }

    #[test]
    fn line_is_an_object_of_its_fields() {
        let line = JsonLine::new("a", b"\"\n").string("b", None).number("c", Some(7));
        let line = String::from_utf8(line.number("d", None).end()).unwrap();
        assert_eq!(line, "{\"a\":\"\\\"\\u000a\",\"b\":null,\"c\":7,\"d\":null}\n");
    }

    proptest! {
        #[test]
        fn any_field_is_one_string_of_one_line(value: Vec<u8>) {
            let request = LoggedRequest {
                method: b"GET",
                target: (&value).into(),
                protocol: b"HTTP/1.1",
                referer: Some((&value).into()),
                user_agent: Some(b"\"}\n{\x1b[2J\xff"),
            };
            let line = json_line(Some(&request), None, Some("memory"));
            prop_assert_eq!(line.chars().filter(|char| char.is_control()).count(), 1);
            let parsed: Value = serde_json::from_str(&line).unwrap();
            prop_assert_eq!(&parsed["target"], &json!(String::from_utf8_lossy(&value)));
            prop_assert_eq!(&parsed["referer"], &parsed["target"]);
            prop_assert_eq!(&parsed["user_agent"], &json!("\"}\n{\u{1b}[2J\u{fffd}"));
        }
    }
}
