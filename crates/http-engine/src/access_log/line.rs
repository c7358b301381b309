//! A line of the access log: begun with the head of the request, completed with the response.

use std::io::Write as _;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use time::UtcDateTime;
use time::macros::format_description;

use super::fields::{LogFormat, LoggedRequest, LoggedResponse, push_address, push_number};
use super::json;

/// The memory that a line keeps for the next request.
const KEPT_BYTES_MAX: usize = 4 << 10;

/// The part of a line that is known when a request was read. Its memory can be used again.
#[derive(Debug, Default)]
pub(crate) struct PendingLine {
    text: Vec<u8>,
    /// The position in `text` of referer and user agent.
    tail_at: usize,
    format: LogFormat,
    started: Option<Instant>,
}

impl PendingLine {
    /// Begins the line of a request that was read at `started`; `None` if its head was not valid.
    pub(crate) fn begin(
        &mut self,
        format: LogFormat,
        request: Option<&LoggedRequest<'_>>,
        started: Instant,
    ) {
        self.text.clear();
        self.text.shrink_to(KEPT_BYTES_MAX);
        self.format = format;
        self.started = Some(started);
        if format == LogFormat::Json {
            return json::begin(&mut self.text, request);
        }
        match request {
            Some(LoggedRequest { method, target, protocol, .. }) => {
                for part in [method, &b" "[..], &**target, b" ", protocol] {
                    push_escaped(&mut self.text, part);
                }
            }
            None => self.text.push(b'-'),
        }
        self.tail_at = self.text.len();
        let request = request.filter(|_| format == LogFormat::Combined);
        let tail = request.map(|request| [request.referer.as_deref(), request.user_agent]);
        for value in tail.into_iter().flatten() {
            self.text.extend_from_slice(b" \"");
            push_escaped(&mut self.text, value.unwrap_or(b"-"));
            self.text.push(b'"');
        }
    }

    /// Returns the time since the request was read.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.map(|started| started.elapsed()).unwrap_or_default()
    }

    /// Writes the line to `line`.
    pub(crate) fn end(&self, line: &mut Vec<u8>, response: &LoggedResponse<'_>) {
        line.clear();
        if self.format == LogFormat::Json {
            return json::end(line, &self.text, response);
        }
        match response.peer {
            Some(peer) => push_address(line, peer),
            None => line.push(b'-'),
        }
        line.extend_from_slice(b" - ");
        push_word(line, response.user);
        line.extend_from_slice(b" [");
        line.extend_from_slice(response.date);
        line.extend_from_slice(b"] \"");
        line.extend_from_slice(&self.text[..self.tail_at]);
        line.extend_from_slice(b"\" ");
        push_number(line, u64::from(response.status));
        line.push(b' ');
        push_number(line, response.bytes);
        line.extend_from_slice(&self.text[self.tail_at..]);
        for (_name, value) in response.fields {
            line.push(b' ');
            push_word(line, *value);
        }
        line.push(b'\n');
    }
}

/// Appends a field that is not quoted, so it may contain no space.
fn push_word(text: &mut Vec<u8>, value: Option<&[u8]>) {
    for (number, word) in value.unwrap_or(b"-").split(|byte| *byte == b' ').enumerate() {
        if number > 0 {
            text.extend_from_slice(b"\\x20");
        }
        push_escaped(text, word);
    }
}

/// Appends text from outside, which can end neither its quotes nor its line.
fn push_escaped(text: &mut Vec<u8>, value: &[u8]) {
    if value.iter().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\')) {
        return text.extend_from_slice(value);
    }
    for byte in value {
        match byte {
            b'"' | b'\\' | 0..=0x1f | 0x7f.. => {
                // Writing to memory does not fail.
                write!(text, "\\x{byte:02X}").unwrap_or_default();
            }
            _ => text.push(*byte),
        }
    }
}

/// A date as the formats write it.
#[derive(Debug, Clone, Default)]
pub(crate) struct LogDates {
    common: Vec<u8>,
    json: Vec<u8>,
}

impl LogDates {
    /// Writes the dates of this time.
    pub(crate) fn of(at: SystemTime) -> Self {
        let common =
            format_description!("[day]/[month repr:short]/[year]:[hour]:[minute]:[second] +0000");
        let json = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z");
        let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let since = since.try_into().unwrap_or(time::Duration::MAX);
        let utc = UtcDateTime::UNIX_EPOCH.saturating_add(since);
        // A date has all parts of both formats.
        let common = utc.format(common).unwrap_or_default().into_bytes();
        Self { common, json: utc.format(json).unwrap_or_default().into_bytes() }
    }

    /// Returns the date in a format: `21/Nov/2026:07:23:14 +0000`, or `2026-11-21T07:23:14Z` in
    /// JSON.
    pub(crate) fn in_format(&self, format: LogFormat) -> &[u8] {
        match format {
            LogFormat::Common | LogFormat::Combined => &self.common,
            LogFormat::Json => &self.json,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn line(format: LogFormat, request: &LoggedRequest<'_>, peer: Option<IpAddr>) -> String {
        let mut pending = PendingLine::default();
        pending.begin(format, None, Instant::now());
        pending.begin(format, Some(request), Instant::now());
        let dates = LogDates::of(UNIX_EPOCH + Duration::from_secs(1_795_245_794));
        let response = LoggedResponse {
            peer,
            user: peer.map(|_| &b"a key"[..]),
            date: dates.in_format(format),
            status: 206,
            bytes: 10_240,
            duration: pending.elapsed(),
            fields: &[("tier", Some(b"direct")), ("none", None)],
        };
        let mut line = b"of the request before".to_vec();
        pending.end(&mut line, &response);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn lines_are_those_of_the_common_format_and_the_fields_of_the_server() {
        let request = LoggedRequest {
            method: b"GET",
            target: b"/a?b".into(),
            protocol: b"HTTP/1.1",
            referer: None,
            user_agent: Some(b"curl/8"),
        };
        let peer = Some("192.0.2.7".parse().unwrap());
        assert_eq!(
            line(LogFormat::Common, &request, peer),
            "192.0.2.7 - a\\x20key [21/Nov/2026:07:23:14 +0000] \"GET /a?b HTTP/1.1\" 206 10240 \
             direct -\n"
        );
        assert_eq!(
            line(LogFormat::Combined, &request, Some("::1".parse().unwrap())),
            "::1 - a\\x20key [21/Nov/2026:07:23:14 +0000] \"GET /a?b HTTP/1.1\" 206 10240 \"-\" \
             \"curl/8\" direct -\n"
        );
        assert!(line(LogFormat::Common, &request, None).starts_with("- - - ["), "a local socket");
        let json = line(LogFormat::Json, &request, None);
        assert!(json.starts_with("{\"time\":\"2026-11-21T07:23:14Z\",\"client\":null,"), "{json}");
    }

    #[test]
    fn fields_of_a_client_cannot_end_their_line() {
        let evil = &b"x\" 200 1\n127.0.0.1 - \\ \x1b[2J\xff"[..];
        let request = LoggedRequest {
            method: b"GET",
            target: evil.into(),
            protocol: b"HTTP/1.1",
            referer: Some(evil.into()),
            user_agent: Some(evil),
        };
        let line = line(LogFormat::Combined, &request, None);
        assert_eq!(line.matches('\n').count(), 1);
        assert_eq!(line.matches('"').count(), 6);
        assert!(line.contains("x\\x22 200 1\\x0A127.0.0.1 - \\x5C \\x1B[2J\\xFF"), "{line}");
    }
}
