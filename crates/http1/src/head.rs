//! Implements the checks that apply to the heads of both requests and responses.

use std::mem::MaybeUninit;

use memchr::memchr_iter;

use crate::error::HttpError;
use crate::fields::Fields;
use crate::limits::{FIELDS_MAX, HeadLimits};

/// Returns an uninitialized array of fields for the stack, so that parsing a head allocates nothing.
pub(crate) const fn no_fields() -> [MaybeUninit<httparse::Header<'static>>; FIELDS_MAX] {
    [const { MaybeUninit::uninit() }; FIELDS_MAX]
}

/// Converts an error of `httparse`.
pub(crate) const fn parse_error(error: httparse::Error) -> HttpError {
    use httparse::Error as E;
    match error {
        E::TooManyHeaders => TOO_MANY,
        E::HeaderName => HttpError::bad_request("invalid byte or whitespace in a field name"),
        E::HeaderValue => HttpError::bad_request("control byte in a field value"),
        E::NewLine => HttpError::bad_request("a line does not end in CRLF"),
        E::Status => HttpError::bad_request("the status is not a three-digit number"),
        E::Token => HttpError::bad_request(
            "the first line is not a request line: method, target and version",
        ),
        E::Version => HttpError::bad_request("invalid HTTP version"),
    }
}

const TOO_MANY: HttpError = HttpError::new(431, "too many fields");
const TOO_LONG: HttpError = HttpError::new(431, "the head is too long");
const BARE_LF: HttpError = HttpError::bad_request("LF without CR");

/// Skips the one empty line that is allowed before a request line (RFC 9112, section 2.2).
pub(crate) fn skip_empty_line(bytes: &[u8]) -> Result<&[u8], HttpError> {
    match bytes {
        [b'\r', b'\n', rest @ ..] => match rest.first() {
            Some(b'\r' | b'\n') => {
                Err(HttpError::bad_request("more than one empty line before the request line"))
            }
            _ => Ok(rest),
        },
        [b'\n', ..] => Err(BARE_LF),
        [b'\r', other, ..] if *other != b'\n' => Err(HttpError::bad_request("CR without LF")),
        _ => Ok(bytes),
    }
}

/// Returns an error if an incomplete head has an LF without CR or is longer than allowed.
pub(crate) fn check_incomplete(bytes: &[u8], limits: &HeadLimits) -> Result<(), HttpError> {
    let mut line_ends = memchr_iter(b'\n', bytes);
    if !line_ends.all(|at| is_line_end(bytes, at)) {
        return Err(BARE_LF);
    }
    if bytes.len() >= limits.head_bytes_max {
        return Err(TOO_LONG);
    }
    Ok(())
}

/// Returns the fields of a complete head, in which `httparse` found `count` fields.
pub(crate) fn fields<'a>(
    head: &'a [u8],
    count: usize,
    limits: &HeadLimits,
) -> Result<Fields<'a>, HttpError> {
    let mut first_line_bytes = None;
    for at in memchr_iter(b'\n', head) {
        if !is_line_end(head, at) {
            return Err(BARE_LF);
        }
        first_line_bytes.get_or_insert(at + 1);
    }
    if head.len() > limits.head_bytes_max {
        return Err(TOO_LONG);
    }
    if count > limits.fields_max {
        return Err(TOO_MANY);
    }
    let lines = first_line_bytes.and_then(|from| head.get(from..head.len().checked_sub(2)?));
    Ok(Fields::new(lines.unwrap_or_default(), count))
}

fn is_line_end(bytes: &[u8], at: usize) -> bool {
    at > 0 && bytes[at - 1] == b'\r'
}
