//! Lines of the access log: the common or the combined format, and the tier as one field more.

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
}

impl Begun {
    /// Notes a request line, and what else the format wants.
    pub(crate) fn begin(&mut self, request_line: &[&[u8]], tail: Option<[Option<&[u8]>; 2]>) {
        self.text.clear();
        for part in request_line {
            push_escaped(&mut self.text, part);
        }
        self.tail_at = self.text.len();
        for value in tail.into_iter().flatten() {
            self.text.extend_from_slice(b" \"");
            push_escaped(&mut self.text, value.unwrap_or(b"-"));
            self.text.push(b'"');
        }
    }

    /// The line, once the answer is over.
    pub(crate) fn end(&self, line: &mut Vec<u8>, end: &Ended<'_>) {
        line.clear();
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

/// The date of a line, such as `21/Nov/2026:07:23:14 +0000`.
pub(crate) fn log_date(at: SystemTime) -> Vec<u8> {
    let format =
        format_description!("[day]/[month repr:short]/[year]:[hour]:[minute]:[second] +0000");
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let since = since.try_into().unwrap_or(time::Duration::MAX);
    let utc = UtcDateTime::UNIX_EPOCH.saturating_add(since);
    // A date has all parts of the format.
    utc.format(format).unwrap_or_default().into_bytes()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn line(request: &[&[u8]], tail: Option<[Option<&[u8]>; 2]>, peer: Option<IpAddr>) -> String {
        let mut begun = Begun::default();
        begun.begin(&[b"of the request before"], None);
        begun.begin(request, tail);
        let date = log_date(UNIX_EPOCH + Duration::from_secs(1_795_245_794));
        let end = Ended { peer, date: &date, status: 206, bytes: 10_240, tier: Tier::Direct };
        let mut line = b"of the request before".to_vec();
        begun.end(&mut line, &end);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn lines_are_those_of_the_common_format_and_a_tier() {
        let request: [&[u8]; 5] = [b"GET", b" ", b"/a?b", b" ", b"HTTP/1.1"];
        let peer = Some("192.0.2.7".parse().unwrap());
        assert_eq!(
            line(&request, None, peer),
            "192.0.2.7 - - [21/Nov/2026:07:23:14 +0000] \"GET /a?b HTTP/1.1\" 206 10240 direct\n"
        );
        let tail = Some([None, Some(&b"curl/8"[..])]);
        assert_eq!(
            line(&request, tail, Some("::1".parse().unwrap())),
            "::1 - - [21/Nov/2026:07:23:14 +0000] \"GET /a?b HTTP/1.1\" 206 10240 \"-\" \"curl/8\" \
             direct\n"
        );
        assert!(line(&request, None, None).starts_with("- - - ["), "a local socket");
    }

    #[test]
    fn nobody_can_write_a_line_of_their_own() {
        let evil = &b"x\" 200 1\n127.0.0.1 - \\ \x1b[2J\xff"[..];
        let line = line(&[evil], Some([Some(evil), Some(evil)]), None);
        assert_eq!(line.matches('\n').count(), 1);
        assert_eq!(line.matches('"').count(), 6);
        assert!(line.contains("x\\x22 200 1\\x0A127.0.0.1 - \\x5C \\x1B[2J\\xFF"), "{line}");
    }
}
