//! Where a message ends. Pure.

use crate::fields::{is_token, members};
use crate::refused::Refused;

/// The two versions that are spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
}

/// How long the body of a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// This many bytes; none is 0.
    Length(u64),
    /// Chunks, the last of which is empty: see [`Chunks`](crate::Chunks).
    Chunked,
    /// Up to the end of the connection. Only responses are.
    UntilClose,
}

impl Framing {
    /// Whether there is no body.
    pub const fn is_empty(self) -> bool {
        matches!(self, Self::Length(0))
    }
}

/// What the fields of a head say of its message and its connection.
#[derive(Debug, Default)]
pub(crate) struct Said<'a> {
    pub(crate) content_length: Option<u64>,
    chunked: Option<()>,
    pub(crate) host: Option<&'a [u8]>,
    pub(crate) expect: Option<&'a [u8]>,
    pub(crate) has_upgrade: bool,
    says_close: bool,
    says_keep_alive: bool,
    says_upgrade: bool,
}

impl<'a> Said<'a> {
    /// Takes what the next field of a request says.
    pub(crate) fn take_of_request(&mut self, name: &str, value: &'a [u8]) -> Result<(), Refused> {
        // The length tells most names apart.
        match name.len() {
            4 if name.eq_ignore_ascii_case("host") => {
                once(&mut self.host, value, Refused::bad("two Host fields"))
            }
            6 if name.eq_ignore_ascii_case("expect") => {
                once(&mut self.expect, value, Refused::new(417, "two Expect fields"))
            }
            _ => self.take(name, value),
        }
    }

    /// Takes what the next field of any message says.
    pub(crate) fn take(&mut self, name: &str, value: &'a [u8]) -> Result<(), Refused> {
        match name.len() {
            7 if name.eq_ignore_ascii_case("upgrade") => self.has_upgrade = true,
            10 if name.eq_ignore_ascii_case("connection") => self.take_connection(value)?,
            14 if name.eq_ignore_ascii_case("content-length") => {
                let two = Refused::bad("two Content-Length fields");
                once(&mut self.content_length, length(value)?, two)?;
            }
            17 if name.eq_ignore_ascii_case("transfer-encoding") => {
                let two = Refused::bad("two Transfer-Encoding fields");
                once(&mut self.chunked, check_coding(value)?, two)?;
            }
            // Many programs take an underline for a hyphen.
            14 if name.eq_ignore_ascii_case("content_length") => return Err(UNDERLINE),
            17 if name.eq_ignore_ascii_case("transfer_encoding") => return Err(UNDERLINE),
            _ => {}
        }
        Ok(())
    }

    fn take_connection(&mut self, value: &[u8]) -> Result<(), Refused> {
        for option in members(value) {
            if option.eq_ignore_ascii_case(b"close") {
                self.says_close = true;
            } else if option.eq_ignore_ascii_case(b"keep-alive") {
                self.says_keep_alive = true;
            } else if option.eq_ignore_ascii_case(b"upgrade") {
                self.says_upgrade = true;
            } else if !is_token(option) {
                return Err(Refused::bad("Connection names something that is no field"));
            }
        }
        Ok(())
    }

    /// Whether the sender keeps the connection after this message, as far as these fields say.
    pub(crate) fn keeps_alive(&self, version: Version) -> bool {
        !self.says_close && (version == Version::Http11 || self.says_keep_alive)
    }

    /// Whether this is about leaving HTTP for another protocol.
    pub(crate) fn is_upgrade(&self, version: Version) -> bool {
        self.says_upgrade && self.has_upgrade && version == Version::Http11
    }

    /// The length of the body, where it is not the kind of message that decides it; `None` if
    /// nothing is said.
    pub(crate) fn framing(&self, version: Version) -> Result<Option<Framing>, Refused> {
        match (self.chunked, self.content_length) {
            (Some(()), Some(_)) => {
                Err(Refused::bad("both Content-Length and Transfer-Encoding say the length"))
            }
            (Some(()), None) if version == Version::Http10 => {
                Err(Refused::bad("Transfer-Encoding in HTTP/1.0"))
            }
            (Some(()), None) => Ok(Some(Framing::Chunked)),
            (None, Some(bytes)) => Ok(Some(Framing::Length(bytes))),
            (None, None) => Ok(None),
        }
    }
}

const UNDERLINE: Refused = Refused::bad("a length whose name has an underline");

fn once<T>(place: &mut Option<T>, value: T, two: Refused) -> Result<(), Refused> {
    if place.replace(value).is_none() { Ok(()) } else { Err(two) }
}

/// The one number of a Content-Length. Beyond 2^63 - 1 no file and no offset can be, and some take
/// what begins with 0 for octal.
fn length(value: &[u8]) -> Result<u64, Refused> {
    let is_octal = value.len() > 1 && value.starts_with(b"0");
    let is_number = value.iter().all(u8::is_ascii_digit) && !is_octal;
    let number = str::from_utf8(value).ok().filter(|_| is_number);
    let bytes = number.and_then(|number| number.parse::<u64>().ok());
    bytes
        .filter(|bytes| i64::try_from(*bytes).is_ok())
        .ok_or(Refused::bad("Content-Length is not one number"))
}

/// Only `chunked` alone can be read. What a sender may well mean but we cannot is 501.
fn check_coding(value: &[u8]) -> Result<(), Refused> {
    if value.eq_ignore_ascii_case(b"chunked") {
        return Ok(());
    }
    let known: [&[u8]; 5] = [b"gzip", b"deflate", b"compress", b"x-gzip", b"x-compress"];
    let is_known = |coding: &[u8]| known.iter().any(|known| known.eq_ignore_ascii_case(coding));
    let mut codings = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let ends_chunked =
        codings.next_back().is_some_and(|last| last.eq_ignore_ascii_case(b"chunked"));
    Err(if ends_chunked && codings.all(is_known) {
        Refused::new(501, "a Transfer-Encoding besides chunked")
    } else {
        Refused::bad("Transfer-Encoding is not chunked")
    })
}
