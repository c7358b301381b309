//! Heads, written from their parts.

use crate::date::Date;
use crate::fields::{is_token, is_value_byte};
use crate::status::words;

/// A part of a head cannot be written: it has a byte that would end its line, or begin another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a method, target, name or value has a byte that cannot stand in a head")]
pub struct Unwritable;

/// Writes one head of HTTP/1.1 at the end of a buffer.
///
/// It is there only when [`end`](Self::end) was good: a head that cannot be written, or was not
/// ended, leaves the buffer as it was.
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
#[must_use = "a head that was not ended is not written"]
pub struct HeadWriter<'a> {
    out: &'a mut Vec<u8>,
    from: usize,
    is_right: bool,
    is_ended: bool,
}

impl<'a> HeadWriter<'a> {
    fn new(out: &'a mut Vec<u8>) -> Self {
        Self { from: out.len(), out, is_right: true, is_ended: false }
    }

    /// A response with the usual words for its status.
    pub fn response(out: &'a mut Vec<u8>, status: u16) -> Self {
        Self::response_saying(out, status, words(status))
    }

    /// A response with words of its own.
    pub fn response_saying(out: &'a mut Vec<u8>, status: u16, words: &str) -> Self {
        let mut head = Self::new(out);
        head.is_right = matches!(status, 100..=999) && words.bytes().all(is_value_byte);
        head.out.extend_from_slice(b"HTTP/1.1 ");
        head.digits(u64::from(status));
        head.out.push(b' ');
        head.out.extend_from_slice(words.as_bytes());
        head.out.extend_from_slice(b"\r\n");
        head
    }

    /// A request. Its target is written as it is, and must be visible ASCII.
    pub fn request(out: &'a mut Vec<u8>, method: &str, target: &[&str]) -> Self {
        let mut head = Self::new(out);
        head.is_right = is_token(method.as_bytes()) && target.iter().any(|part| !part.is_empty());
        head.out.extend_from_slice(method.as_bytes());
        head.out.push(b' ');
        for part in target {
            head.is_right &= part.bytes().all(|byte| byte.is_ascii_graphic());
            head.out.extend_from_slice(part.as_bytes());
        }
        head.out.extend_from_slice(b" HTTP/1.1\r\n");
        head
    }

    /// A field.
    pub fn field(&mut self, name: impl AsRef<[u8]>, value: &[u8]) -> &mut Self {
        self.field_of(name, &[value])
    }

    /// A field whose value is in parts.
    pub fn field_of(&mut self, name: impl AsRef<[u8]>, value: &[&[u8]]) -> &mut Self {
        self.name(name.as_ref());
        for part in value {
            self.is_right &= part.iter().all(|byte| is_value_byte(*byte));
            self.out.extend_from_slice(part);
        }
        self.out.extend_from_slice(b"\r\n");
        self
    }

    /// A field whose value is a number.
    pub fn number(&mut self, name: impl AsRef<[u8]>, value: u64) -> &mut Self {
        self.name(name.as_ref());
        self.digits(value);
        self.out.extend_from_slice(b"\r\n");
        self
    }

    /// A field whose value is a date.
    pub fn date(&mut self, name: impl AsRef<[u8]>, date: &Date) -> &mut Self {
        self.field(name, date.as_bytes())
    }

    /// Ends the head with its empty line.
    ///
    /// # Errors
    /// A part of it has a byte that cannot stand there, a CR, LF or NUL for example. Nothing is
    /// written.
    pub fn end(mut self) -> Result<(), Unwritable> {
        if !self.is_right {
            return Err(Unwritable);
        }
        self.out.extend_from_slice(b"\r\n");
        self.is_ended = true;
        Ok(())
    }

    fn name(&mut self, name: &[u8]) {
        self.is_right &= is_token(name);
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
            self.out.truncate(self.from);
        }
    }
}
