//! Determines the framing of a body (RFC 9112, section 6), and evaluates the other fields that
//! concern the connection. Performs no I/O.

use crate::error::HttpError;
use crate::fields::{is_token, list_members};

/// The supported protocol versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
}

/// The framing of a message body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// A body of this many bytes; 0 if there is no body.
    Length(u64),
    /// A body in the chunked transfer coding; see [`ChunkedDecoder`](crate::ChunkedDecoder).
    Chunked,
    /// A body that ends with the connection; responses only.
    UntilClose,
}

impl Framing {
    /// Returns `true` if there is no body.
    pub const fn is_empty(self) -> bool {
        matches!(self, Self::Length(0))
    }
}

/// The fields of a head that control framing, routing and the connection.
#[derive(Debug, Default)]
pub(crate) struct ControlFields<'a> {
    pub(crate) content_length: Option<u64>,
    chunked: Option<()>,
    pub(crate) host: Option<&'a [u8]>,
    pub(crate) expect: Option<&'a [u8]>,
    pub(crate) has_upgrade: bool,
    has_close: bool,
    has_keep_alive: bool,
    has_upgrade_option: bool,
}

impl<'a> ControlFields<'a> {
    /// Records the next field of a request, if it is a control field.
    pub(crate) fn apply_request_field(
        &mut self,
        name: &str,
        value: &'a [u8],
    ) -> Result<(), HttpError> {
        // Matching on the length first avoids most comparisons.
        match name.len() {
            4 if name.eq_ignore_ascii_case("host") => {
                once(&mut self.host, value, HttpError::bad_request("more than one Host field"))
            }
            6 if name.eq_ignore_ascii_case("expect") => {
                once(&mut self.expect, value, HttpError::new(417, "more than one Expect field"))
            }
            _ => self.apply_field(name, value),
        }
    }

    /// Records the next field of any message, if it is a control field.
    pub(crate) fn apply_field(&mut self, name: &str, value: &'a [u8]) -> Result<(), HttpError> {
        match name.len() {
            7 if name.eq_ignore_ascii_case("upgrade") => self.has_upgrade = true,
            10 if name.eq_ignore_ascii_case("connection") => self.apply_connection(value)?,
            14 if name.eq_ignore_ascii_case("content-length") => {
                let duplicate = HttpError::bad_request("more than one Content-Length field");
                once(&mut self.content_length, length(value)?, duplicate)?;
            }
            17 if name.eq_ignore_ascii_case("transfer-encoding") => {
                let duplicate = HttpError::bad_request("more than one Transfer-Encoding field");
                once(&mut self.chunked, check_coding(value)?, duplicate)?;
            }
            // Many programs treat an underscore in a field name as a hyphen, so they would take the
            // following names for Content-Length and Transfer-Encoding.
            14 if name.eq_ignore_ascii_case("content_length") => return Err(UNDERSCORE),
            17 if name.eq_ignore_ascii_case("transfer_encoding") => return Err(UNDERSCORE),
            _ => {}
        }
        Ok(())
    }

    fn apply_connection(&mut self, value: &[u8]) -> Result<(), HttpError> {
        for option in list_members(value) {
            if option.eq_ignore_ascii_case(b"close") {
                self.has_close = true;
            } else if option.eq_ignore_ascii_case(b"keep-alive") {
                self.has_keep_alive = true;
            } else if option.eq_ignore_ascii_case(b"upgrade") {
                self.has_upgrade_option = true;
            } else if !is_token(option) {
                return Err(HttpError::bad_request("a Connection option is not a field name"));
            }
        }
        Ok(())
    }

    /// Returns `true` if the sender keeps the connection open after this message, according to
    /// these fields and the version.
    pub(crate) fn keeps_alive(&self, version: Version) -> bool {
        !self.has_close && (version == Version::Http11 || self.has_keep_alive)
    }

    /// Returns `true` if the message requests or announces a switch to another protocol.
    pub(crate) fn is_upgrade(&self, version: Version) -> bool {
        self.has_upgrade_option && self.has_upgrade && version == Version::Http11
    }

    /// Returns the framing that the fields declare; `None` if they declare none. The method of the
    /// request or the status of the response may override this framing.
    pub(crate) fn framing(&self, version: Version) -> Result<Option<Framing>, HttpError> {
        match (self.chunked, self.content_length) {
            (Some(()), Some(_)) => {
                Err(HttpError::bad_request("both Content-Length and Transfer-Encoding are present"))
            }
            (Some(()), None) if version == Version::Http10 => {
                Err(HttpError::bad_request("Transfer-Encoding in HTTP/1.0"))
            }
            (Some(()), None) => Ok(Some(Framing::Chunked)),
            (None, Some(bytes)) => Ok(Some(Framing::Length(bytes))),
            (None, None) => Ok(None),
        }
    }
}

const UNDERSCORE: HttpError =
    HttpError::bad_request("underscore in the name of Content-Length or Transfer-Encoding");

fn once<T>(slot: &mut Option<T>, value: T, duplicate: HttpError) -> Result<(), HttpError> {
    if slot.replace(value).is_none() { Ok(()) } else { Err(duplicate) }
}

/// Parses the value of a Content-Length field. Rejects lengths above 2^63 - 1, the largest file
/// offset. Rejects leading zeros, because some parsers read such a number as octal.
fn length(value: &[u8]) -> Result<u64, HttpError> {
    let is_octal = value.len() > 1 && value.starts_with(b"0");
    let is_number = value.iter().all(u8::is_ascii_digit) && !is_octal;
    let number = str::from_utf8(value).ok().filter(|_| is_number);
    let bytes = number.and_then(|number| number.parse::<u64>().ok());
    bytes
        .filter(|bytes| i64::try_from(*bytes).is_ok())
        .ok_or(HttpError::bad_request("Content-Length is not a single decimal number"))
}

/// Accepts only the coding `chunked`. A list of other known codings that ends in `chunked` gives
/// 501, any other value 400.
fn check_coding(value: &[u8]) -> Result<(), HttpError> {
    if value.eq_ignore_ascii_case(b"chunked") {
        return Ok(());
    }
    let known: [&[u8]; 5] = [b"gzip", b"deflate", b"compress", b"x-gzip", b"x-compress"];
    let is_known = |coding: &[u8]| known.iter().any(|known| known.eq_ignore_ascii_case(coding));
    let mut codings = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let ends_chunked =
        codings.next_back().is_some_and(|last| last.eq_ignore_ascii_case(b"chunked"));
    Err(if ends_chunked && codings.all(is_known) {
        HttpError::new(501, "a Transfer-Encoding other than chunked is not supported")
    } else {
        HttpError::bad_request("Transfer-Encoding is not chunked")
    })
}
