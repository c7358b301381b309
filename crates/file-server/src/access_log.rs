//! Lines of the access log: the common or the combined format, and the tier as one field more; or
//! JSON.

use std::fmt;
use std::io::Write as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use haul_line_log::LineLog;
use time::UtcDateTime;
use time::macros::format_description;

use crate::tier::Tier;

/// A destination of log lines. Calls must not block: they are made by serving threads.
pub trait Lines: Send + Sync {
    /// Appends a line, which ends in a newline. Lines that cannot be written are dropped and
    /// counted.
    fn append(&self, line: &[u8]);
}

impl Lines for LineLog {
    /// Open the log with `WhenFull::DropNewest`; otherwise a full disk blocks the server.
    fn append(&self, line: &[u8]) {
        // Only a closed log refuses a line, and it is closed after the server.
        Self::append(self, line).unwrap_or_default();
    }
}

/// The format of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// The common log format, and the tier.
    #[default]
    Common,
    /// The combined log format (with referer and user agent), and the tier.
    Combined,
    /// A JSON object with the fields `time`, `client`, `method`, `target`, `protocol`, `referer`,
    /// `user_agent`, `status`, `bytes` and `tier`. A field without a value is `null`.
    Json,
}

/// An access log.
#[derive(Clone)]
pub struct AccessLog {
    /// The destination of the lines.
    pub lines: Arc<dyn Lines>,
    /// The format of the lines.
    pub format: LogFormat,
}

impl fmt::Debug for AccessLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessLog").field("format", &self.format).finish_non_exhaustive()
    }
}

/// What of a line is known when a request was read. The memory is used again for the next one.
#[derive(Debug, Default)]
pub(crate) struct Begun {
    text: Vec<u8>,
    /// Where in `text` referer and user agent begin.
    tail_at: usize,
    format: LogFormat,
}

/// The parts of a request that a line contains.
#[derive(Debug)]
pub(crate) struct RequestLine<'a> {
    pub(crate) method: &'a [u8],
    pub(crate) target: &'a [u8],
    /// `HTTP/1.0` or `HTTP/1.1`.
    pub(crate) protocol: &'a [u8],
    pub(crate) referer: Option<&'a [u8]>,
    pub(crate) user_agent: Option<&'a [u8]>,
}

impl Begun {
    /// Notes a request, as far as the format wants; `None` if its head was not valid.
    pub(crate) fn begin(&mut self, format: LogFormat, request: Option<&RequestLine<'_>>) {
        self.text.clear();
        self.format = format;
        if format == LogFormat::Json {
            return begin_json(&mut self.text, request);
        }
        match request {
            Some(RequestLine { method, target, protocol, .. }) => {
                for part in [method, &b" "[..], target, b" ", protocol] {
                    push_escaped(&mut self.text, part);
                }
            }
            None => self.text.push(b'-'),
        }
        self.tail_at = self.text.len();
        let request = request.filter(|_| format == LogFormat::Combined);
        let tail = request.map(|request| [request.referer, request.user_agent]);
        for value in tail.into_iter().flatten() {
            self.text.extend_from_slice(b" \"");
            push_escaped(&mut self.text, value.unwrap_or(b"-"));
            self.text.push(b'"');
        }
    }

    /// The line, once the answer is over.
    pub(crate) fn end(&self, line: &mut Vec<u8>, end: &Ended<'_>) {
        line.clear();
        if self.format == LogFormat::Json {
            return end_json(line, &self.text, end);
        }
        // Writing to memory does not fail.
        match end.peer {
            Some(peer) => write!(line, "{peer}").unwrap_or_default(),
            None => line.extend_from_slice(b"-"),
        }
        line.extend_from_slice(b" - - [");
        line.extend_from_slice(end.date);
        line.extend_from_slice(b"] \"");
        line.extend_from_slice(&self.text[..self.tail_at]);
        line.extend_from_slice(b"\" ");
        push_number(line, u64::from(end.status));
        line.push(b' ');
        push_number(line, end.bytes);
        line.extend_from_slice(&self.text[self.tail_at..]);
        line.push(b' ');
        line.extend_from_slice(end.tier.name().as_bytes());
        line.push(b'\n');
    }
}

/// What is known at the end.
#[derive(Debug)]
pub(crate) struct Ended<'a> {
    /// None where it came by a socket of this machine.
    pub(crate) peer: Option<IpAddr>,
    pub(crate) date: &'a [u8],
    pub(crate) status: u16,
    /// Of the body, as far as the kernel took them.
    pub(crate) bytes: u64,
    pub(crate) tier: Tier,
}

/// Text from outside: it can neither end its quotes nor its line.
fn push_escaped(text: &mut Vec<u8>, value: &[u8]) {
    for byte in value {
        match byte {
            b'"' | b'\\' | 0..=0x1f | 0x7f.. => {
                write!(text, "\\x{byte:02X}").unwrap_or_default();
            }
            _ => text.push(*byte),
        }
    }
}

fn push_number(text: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 20];
    let (mut at, mut rest) = (digits.len(), number);
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    text.extend_from_slice(&digits[at..]);
}

/// The date of a line, such as `21/Nov/2026:07:23:14 +0000`; in JSON, `2026-11-21T07:23:14Z`.
pub(crate) fn log_date(format: LogFormat, at: SystemTime) -> Vec<u8> {
    let common =
        format_description!("[day]/[month repr:short]/[year]:[hour]:[minute]:[second] +0000");
    let json = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z");
    let format = if format == LogFormat::Json { json } else { common };
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let since = since.try_into().unwrap_or(time::Duration::MAX);
    let utc = UtcDateTime::UNIX_EPOCH.saturating_add(since);
    // A date has all parts of the format.
    utc.format(format).unwrap_or_default().into_bytes()
}

/// Appends the fields that are known when the request was read; `None` if its head was not valid.
fn begin_json(out: &mut Vec<u8>, request: Option<&RequestLine<'_>>) {
    let strings = request.map(|request| {
        let RequestLine { method, target, protocol, referer, user_agent } = *request;
        [Some(method), Some(target), Some(protocol), referer, user_agent]
    });
    let names = ["method", "target", "protocol", "referer", "user_agent"];
    for (name, value) in names.into_iter().zip(strings.unwrap_or_default()) {
        // Writing to memory does not fail.
        write!(out, ",\"{name}\":").unwrap_or_default();
        match value {
            Some(value) => push_string(out, value),
            None => out.extend_from_slice(b"null"),
        }
    }
}

/// Writes the whole line; `begun` are the fields that [`begin_json`] wrote.
fn end_json(line: &mut Vec<u8>, begun: &[u8], end: &Ended<'_>) {
    let Ended { peer, date, status, bytes, tier, .. } = end;
    line.extend_from_slice(b"{\"time\":");
    push_string(line, date);
    match peer {
        Some(peer) => write!(line, ",\"client\":\"{peer}\"").unwrap_or_default(),
        None => line.extend_from_slice(b",\"client\":null"),
    }
    line.extend_from_slice(begun);
    write!(line, ",\"status\":{status},\"bytes\":{bytes},\"tier\":").unwrap_or_default();
    match tier.name() {
        "-" => line.extend_from_slice(b"null}\n"),
        name => writeln!(line, "\"{name}\"}}").unwrap_or_default(),
    }
}

/// Appends a JSON string. Bytes that are not UTF-8 become U+FFFD, and control characters are
/// escaped, so that a terminal cannot interpret them.
fn push_string(out: &mut Vec<u8>, value: &[u8]) {
    out.push(b'"');
    for chunk in value.utf8_chunks() {
        for char in chunk.valid().chars() {
            match char {
                '"' => out.extend_from_slice(b"\\\""),
                '\\' => out.extend_from_slice(b"\\\\"),
                _ if char.is_control() => {
                    write!(out, "\\u{:04x}", u32::from(char)).unwrap_or_default();
                }
                _ => out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn line(format: LogFormat, request: &RequestLine<'_>, peer: Option<IpAddr>) -> String {
        let mut begun = Begun::default();
        begun.begin(format, None);
        begun.begin(format, Some(request));
        let date = log_date(format, UNIX_EPOCH + Duration::from_secs(1_795_245_794));
        let end = Ended { peer, date: &date, status: 206, bytes: 10_240, tier: Tier::Direct };
        let mut line = b"of the request before".to_vec();
        begun.end(&mut line, &end);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn lines_are_those_of_the_common_format_and_a_tier() {
        let request = RequestLine {
            method: b"GET",
            target: b"/a?b",
            protocol: b"HTTP/1.1",
            referer: None,
            user_agent: Some(b"curl/8"),
        };
        let peer = Some("192.0.2.7".parse().unwrap());
        assert_eq!(
            line(LogFormat::Common, &request, peer),
            "192.0.2.7 - - [21/Nov/2026:07:23:14 +0000] \"GET /a?b HTTP/1.1\" 206 10240 direct\n"
        );
        assert_eq!(
            line(LogFormat::Combined, &request, Some("::1".parse().unwrap())),
            "::1 - - [21/Nov/2026:07:23:14 +0000] \"GET /a?b HTTP/1.1\" 206 10240 \"-\" \"curl/8\" \
             direct\n"
        );
        assert!(line(LogFormat::Common, &request, None).starts_with("- - - ["), "a local socket");
        let json = line(LogFormat::Json, &request, None);
        assert!(json.starts_with("{\"time\":\"2026-11-21T07:23:14Z\",\"client\":null,"), "{json}");
    }

    #[test]
    fn nobody_can_write_a_line_of_their_own() {
        let evil = &b"x\" 200 1\n127.0.0.1 - \\ \x1b[2J\xff"[..];
        let request = RequestLine {
            method: b"GET",
            target: evil,
            protocol: b"HTTP/1.1",
            referer: Some(evil),
            user_agent: Some(evil),
        };
        let line = line(LogFormat::Combined, &request, None);
        assert_eq!(line.matches('\n').count(), 1);
        assert_eq!(line.matches('"').count(), 6);
        assert!(line.contains("x\\x22 200 1\\x0A127.0.0.1 - \\x5C \\x1B[2J\\xFF"), "{line}");
    }

    fn json_line(request: Option<&RequestLine<'_>>, peer: Option<&str>, tier: Tier) -> String {
        let (mut begun, mut line) = (Vec::new(), Vec::new());
        begin_json(&mut begun, request);
        let peer = peer.map(|peer| peer.parse().unwrap());
        let date = b"2026-11-21T07:23:14Z";
        end_json(&mut line, &begun, &Ended { peer, date, status: 206, bytes: 10_240, tier });
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn json_lines_are_objects_with_all_fields() {
        let request = RequestLine {
            method: b"GET",
            target: b"/a?b",
            protocol: b"HTTP/1.1",
            referer: None,
            user_agent: Some(b"curl/8"),
        };
        assert_eq!(
            json_line(Some(&request), Some("192.0.2.7"), Tier::Direct),
            "{\"time\":\"2026-11-21T07:23:14Z\",\"client\":\"192.0.2.7\",\"method\":\"GET\",\
             \"target\":\"/a?b\",\"protocol\":\"HTTP/1.1\",\"referer\":null,\
             \"user_agent\":\"curl/8\",\"status\":206,\"bytes\":10240,\"tier\":\"direct\"}\n"
        );
        let invalid: Value = serde_json::from_str(&json_line(None, None, Tier::None)).unwrap();
        for name in ["client", "method", "target", "protocol", "referer", "user_agent", "tier"] {
            assert_eq!(invalid.get(name), Some(&json!(null)), "{name}");
        }
    }

    proptest! {
        #[test]
        fn any_field_is_one_string_of_one_line(value: Vec<u8>) {
            let request = RequestLine {
                method: b"GET",
                target: &value,
                protocol: b"HTTP/1.1",
                referer: Some(&value),
                user_agent: Some(b"\"}\n{\x1b[2J\xff"),
            };
            let line = json_line(Some(&request), None, Tier::Memory);
            prop_assert_eq!(line.chars().filter(|char| char.is_control()).count(), 1);
            let parsed: Value = serde_json::from_str(&line).unwrap();
            prop_assert_eq!(&parsed["target"], &json!(String::from_utf8_lossy(&value)));
            prop_assert_eq!(&parsed["referer"], &parsed["target"]);
            prop_assert_eq!(&parsed["user_agent"], &json!("\"}\n{\u{1b}[2J\u{fffd}"));
        }
    }
}
