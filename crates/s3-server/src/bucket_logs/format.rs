//! The bytes of a record: 26 fields, separated by spaces, and a line feed. Pure.
//!
//! A field without a value is `-`. Bytes that would end a field early, or that are not printable
//! ASCII, are percent-encoded, so that a client cannot forge fields or records.

use std::fmt::Write;
use std::time::Duration;

use time::OffsetDateTime;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A request's record.
#[derive(Debug, Clone)]
pub(super) struct Record<'a> {
    pub(super) owner: &'a str,
    pub(super) bucket: &'a str,
    /// The time at which the request was received.
    pub(super) time: OffsetDateTime,
    pub(super) client: Option<&'a str>,
    /// The user whose key signed the request.
    pub(super) requester: Option<&'a str>,
    pub(super) request_id: &'a str,
    pub(super) operation: &'a str,
    pub(super) key: Option<&'a str>,
    pub(super) request_line: Option<&'a str>,
    pub(super) status: Option<u16>,
    pub(super) error: Option<&'a str>,
    pub(super) sent_bytes: u64,
    pub(super) object_bytes: Option<u64>,
    /// The time from the request's arrival to the response's last byte.
    pub(super) total: Option<Duration>,
    /// The time from the request's last byte to the response's head.
    pub(super) answering: Option<Duration>,
    pub(super) referer: Option<&'a [u8]>,
    pub(super) user_agent: Option<&'a [u8]>,
    /// The version ID in the request.
    pub(super) version: Option<&'a str>,
    /// `SigV2` or `SigV4`.
    pub(super) signature: Option<&'static str>,
    /// `AuthHeader` or `QueryString`.
    pub(super) authentication: Option<&'static str>,
    pub(super) host: Option<&'a [u8]>,
    /// `true` if only an ACL allowed the request.
    pub(super) needs_list: bool,
}

impl Record<'_> {
    /// Returns the record as a line.
    pub(super) fn line(&self) -> String {
        let mut line = Line::default();
        line.text(Some(self.owner.as_bytes()));
        line.text(Some(self.bucket.as_bytes()));
        line.raw(&date(self.time));
        line.text(self.client.map(str::as_bytes));
        line.text(self.requester.map(str::as_bytes));
        line.text(Some(self.request_id.as_bytes()));
        line.text(Some(self.operation.as_bytes()));
        line.key(self.key);
        line.quoted(self.request_line.map(str::as_bytes), "-");
        line.number(self.status.map(u64::from));
        line.text(self.error.map(str::as_bytes));
        line.number(Some(self.sent_bytes).filter(|bytes| *bytes > 0));
        line.number(self.object_bytes);
        line.number(self.total.map(millis));
        line.number(self.answering.map(millis));
        line.quoted(self.referer, "\"-\"");
        line.quoted(self.user_agent, "\"-\"");
        line.text(self.version.map(str::as_bytes));
        // The host ID is left out: the request ID names the request.
        line.raw("-");
        line.text(self.signature.map(str::as_bytes));
        // The cipher suite is left out.
        line.raw("-");
        line.text(self.authentication.map(str::as_bytes));
        line.text(self.host);
        // The TLS version and the access point are left out.
        line.raw("-");
        line.raw("-");
        line.raw(if self.needs_list { "Yes" } else { "-" });
        line.0.push('\n');
        line.0
    }
}

/// A line that is being written.
#[derive(Debug, Default)]
struct Line(String);

impl Line {
    /// Appends a field that needs no encoding.
    fn raw(&mut self, field: &str) {
        if !self.0.is_empty() {
            self.0.push(' ');
        }
        self.0.push_str(field);
    }

    fn number(&mut self, field: Option<u64>) {
        self.raw(&field.map_or("-".to_owned(), |number| number.to_string()));
    }

    fn text(&mut self, field: Option<&[u8]>) {
        match field.filter(|field| !field.is_empty()) {
            None => self.raw("-"),
            Some(field) => self.raw(&encoded(field, |byte| byte == b' ')),
        }
    }

    /// Appends a key. Encodes all bytes except letters, digits, `-`, `.`, `_`, `~` and `/`.
    fn key(&mut self, key: Option<&str>) {
        let is_reserved = |byte: u8| !byte.is_ascii_alphanumeric() && !b"-._~/".contains(&byte);
        match key {
            None => self.raw("-"),
            Some(key) => self.raw(&encoded(key.as_bytes(), is_reserved)),
        }
    }

    fn quoted(&mut self, field: Option<&[u8]>, absent: &str) {
        match field.filter(|field| !field.is_empty()) {
            None => self.raw(absent),
            Some(field) => self.raw(&format!("\"{}\"", encoded(field, |_byte| false))),
        }
    }
}

/// Percent-encodes quotes, backslashes, bytes that are not printable ASCII, and bytes that
/// `is_reserved` selects.
fn encoded(field: &[u8], is_reserved: impl Fn(u8) -> bool) -> String {
    let mut text = String::with_capacity(field.len());
    for &byte in field {
        if matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\') && !is_reserved(byte) {
            text.push(char::from(byte));
        } else {
            write!(text, "%{byte:02X}").expect("a String accepts all text");
        }
    }
    text
}

/// Returns a time in the Common Log Format, in brackets.
fn date(time: OffsetDateTime) -> String {
    let month = MONTHS[usize::from(u8::from(time.month())) - 1];
    let (day, year) = (time.day(), time.year());
    let (hour, minute, second) = time.to_hms();
    format!("[{day:02}/{month}/{year:04}:{hour:02}:{minute:02}:{second:02} +0000]")
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record<'static> {
        Record {
            owner: "ann",
            bucket: "photos",
            time: OffsetDateTime::from_unix_timestamp(1_549_411_238).unwrap(),
            client: Some("192.0.2.3"),
            requester: Some("ben"),
            request_id: "00000000000000A1",
            operation: "REST.GET.OBJECT",
            key: Some("2019/puppy.jpg"),
            request_line: Some("GET /photos/2019/puppy.jpg?versionId=7 HTTP/1.1"),
            status: Some(200),
            error: None,
            sent_bytes: 2_662_992,
            object_bytes: Some(3_462_992),
            total: Some(Duration::from_millis(70)),
            answering: Some(Duration::from_micros(10_900)),
            referer: Some(b"http://www.example.com/"),
            user_agent: Some(b"curl/7.15.1"),
            version: Some("7"),
            signature: Some("SigV4"),
            authentication: Some("AuthHeader"),
            host: Some(b"localhost:9000"),
            needs_list: true,
        }
    }

    #[test]
    fn record_has_the_fields_of_s3_in_their_order() {
        assert_eq!(
            record().line(),
            "ann photos [06/Feb/2019:00:00:38 +0000] 192.0.2.3 ben 00000000000000A1 \
             REST.GET.OBJECT 2019/puppy.jpg \"GET /photos/2019/puppy.jpg?versionId=7 HTTP/1.1\" \
             200 - 2662992 3462992 70 10 \"http://www.example.com/\" \"curl/7.15.1\" 7 - SigV4 - \
             AuthHeader localhost:9000 - - Yes\n"
        );
    }

    #[test]
    fn absent_fields_are_dashes() {
        let none = Record {
            client: None,
            requester: None,
            key: None,
            request_line: None,
            status: None,
            error: Some("NoSuchKey"),
            sent_bytes: 0,
            object_bytes: None,
            total: None,
            answering: None,
            referer: None,
            user_agent: Some(b""),
            version: None,
            signature: None,
            authentication: None,
            host: None,
            needs_list: false,
            ..record()
        };
        assert_eq!(
            none.line(),
            "ann photos [06/Feb/2019:00:00:38 +0000] - - 00000000000000A1 REST.GET.OBJECT - - - \
             NoSuchKey - - - - \"-\" \"-\" - - - - - - - - -\n"
        );
    }

    #[test]
    fn client_can_forge_neither_fields_nor_records() {
        let forged = Record {
            key: Some("a b\"\n\u{e4}%+"),
            request_line: Some("GET /photos/a\"b HTTP/1.1"),
            user_agent: Some(b"a\" 200 - \"b\\\r\n\t\xff"),
            referer: Some(b"a b"),
            version: Some("1 2"),
            host: Some(b"a b"),
            ..record()
        };
        let line = forged.line();
        assert_eq!(line.matches('\n').count(), 1);
        assert!(
            line.contains(" a%20b%22%0A%C3%A4%25%2B \"GET /photos/a%22b HTTP/1.1\" "),
            "{line}"
        );
        let agent = " \"a b\" \"a%22 200 - %22b%5C%0D%0A%09%FF\" 1%202 - SigV4 - AuthHeader a%20b ";
        assert!(line.contains(agent), "{line}");
    }
}
