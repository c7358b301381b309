//! Writes the heads of requests and responses.

use crate::date::Date;
use crate::fields::{is_token, is_value_byte};
use crate::status::reason_phrase;

/// The error for a head that contains an invalid byte, such as CR or LF, or an invalid status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid byte in a method, target, field name or field value")]
pub struct InvalidHead;

/// A writer of one HTTP/1.1 head at the end of a buffer.
///
/// The head stays in the buffer only if [`end`](Self::end) succeeds; otherwise dropping the writer
/// removes it.
///
/// ```
/// use haul_http1::HeadWriter;
///
/// let mut out = Vec::new();
/// let mut head = HeadWriter::response(&mut out, 200);
/// head.field("Content-Type", b"text/plain").number("Content-Length", 5);
/// head.end().unwrap();
/// assert_eq!(out, b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\n");
/// ```
#[derive(Debug)]
#[must_use = "the head is discarded unless `end` is called"]
pub struct HeadWriter<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    is_valid: bool,
    is_ended: bool,
}

impl<'a> HeadWriter<'a> {
    fn new(out: &'a mut Vec<u8>) -> Self {
        Self { start: out.len(), out, is_valid: true, is_ended: false }
    }

    /// Starts a response with the standard reason phrase of its status.
    pub fn response(out: &'a mut Vec<u8>, status: u16) -> Self {
        Self::response_with_reason(out, status, reason_phrase(status))
    }

    /// Starts a response with the reason phrase `reason`.
    pub fn response_with_reason(out: &'a mut Vec<u8>, status: u16, reason: &str) -> Self {
        let mut head = Self::new(out);
        head.is_valid = matches!(status, 100..=999) && reason.bytes().all(is_value_byte);
        head.out.extend_from_slice(b"HTTP/1.1 ");
        head.digits(u64::from(status));
        head.out.push(b' ');
        head.out.extend_from_slice(reason.as_bytes());
        head.out.extend_from_slice(b"\r\n");
        head
    }

    /// Starts with the first lines of a head that was written before: its first line and fields,
    /// without the empty line. The caller vouches for them: they are not checked again.
    pub fn with_prefix(out: &'a mut Vec<u8>, prefix: &[u8]) -> Self {
        let head = Self::new(out);
        head.out.extend_from_slice(prefix);
        head
    }

    /// Starts a request. `target` is the request target in parts; it must be visible ASCII, because
    /// the writer does not percent-encode it.
    pub fn request(out: &'a mut Vec<u8>, method: &str, target: &[&str]) -> Self {
        let mut head = Self::new(out);
        head.is_valid = is_token(method.as_bytes()) && target.iter().any(|part| !part.is_empty());
        head.out.extend_from_slice(method.as_bytes());
        head.out.push(b' ');
        for part in target {
            head.is_valid &= part.bytes().all(|byte| byte.is_ascii_graphic());
            head.out.extend_from_slice(part.as_bytes());
        }
        head.out.extend_from_slice(b" HTTP/1.1\r\n");
        head
    }

    /// Appends a field.
    pub fn field(&mut self, name: impl AsRef<[u8]>, value: &[u8]) -> &mut Self {
        self.field_parts(name, &[value])
    }

    /// Appends a field whose value is passed in parts.
    pub fn field_parts(&mut self, name: impl AsRef<[u8]>, value: &[&[u8]]) -> &mut Self {
        self.name(name.as_ref());
        for part in value {
            self.is_valid &= part.iter().all(|byte| is_value_byte(*byte));
            self.out.extend_from_slice(part);
        }
        self.out.extend_from_slice(b"\r\n");
        self
    }

    /// Appends a field whose value is a number.
    pub fn number(&mut self, name: impl AsRef<[u8]>, value: u64) -> &mut Self {
        self.name(name.as_ref());
        self.digits(value);
        self.out.extend_from_slice(b"\r\n");
        self
    }

    /// Appends a field whose value is a date.
    pub fn date(&mut self, name: impl AsRef<[u8]>, date: &Date) -> &mut Self {
        self.field(name, date.as_bytes())
    }

    /// Ends the head with an empty line.
    ///
    /// # Errors
    /// Fails if a part contains an invalid byte such as CR, LF or NUL, if the method, the target or
    /// a field name is empty, or if the status is not from 100 to 999. The head is then removed
    /// from the buffer.
    pub fn end(mut self) -> Result<(), InvalidHead> {
        if !self.is_valid {
            return Err(InvalidHead);
        }
        self.out.extend_from_slice(b"\r\n");
        self.is_ended = true;
        Ok(())
    }

    fn name(&mut self, name: &[u8]) {
        self.is_valid &= is_token(name);
        self.out.extend_from_slice(name);
        self.out.extend_from_slice(b": ");
    }

    fn digits(&mut self, mut number: u64) {
        let mut digits = [0; 20];
        let mut from = digits.len();
        loop {
            from -= 1;
            digits[from] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.out.extend_from_slice(&digits[from..]);
    }
}

impl Drop for HeadWriter<'_> {
    fn drop(&mut self) {
        if !self.is_ended {
            self.out.truncate(self.start);
        }
    }
}
