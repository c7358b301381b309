//! What heads of requests and of responses have in common.

use std::mem::MaybeUninit;

use memchr::memchr_iter;

use crate::fields::Fields;
use crate::limits::{FIELDS_MAX, HeadLimits};
use crate::refused::Refused;

/// Room for fields, on the stack, and not even zeroed: a head costs no allocation.
pub(crate) const NO_FIELDS: [MaybeUninit<httparse::Header<'static>>; FIELDS_MAX] =
    [const { MaybeUninit::uninit() }; FIELDS_MAX];

/// What the parser found wrong.
pub(crate) const fn refusal(error: httparse::Error) -> Refused {
    use httparse::Error as E;
    match error {
        E::TooManyHeaders => TOO_MANY,
        E::HeaderName => Refused::bad("a field's name has a wrong byte, or blanks around it"),
        E::HeaderValue => Refused::bad("a field's value has a control byte"),
        E::NewLine => Refused::bad("a line does not end in CR and LF"),
        E::Status => Refused::bad("the status is no number of three digits"),
        E::Token => Refused::bad("the first line is not method, target and version"),
        E::Version => Refused::bad("the version is not one of HTTP"),
    }
}

const TOO_MANY: Refused = Refused::new(431, "too many fields");
const TOO_LONG: Refused = Refused::new(431, "the head is too long");
const BARE_LF: Refused = Refused::bad("a line ends in LF without CR");

/// Leaves out the one empty line that may stand before a message.
pub(crate) fn skip_empty_line(bytes: &[u8]) -> Result<&[u8], Refused> {
    match bytes {
        [b'\r', b'\n', rest @ ..] => match rest.first() {
            Some(b'\r' | b'\n') => Err(Refused::bad("empty lines before the first line")),
            _ => Ok(rest),
        },
        [b'\n', ..] => Err(BARE_LF),
        [b'\r', other, ..] if *other != b'\n' => Err(Refused::bad("a CR without LF")),
        _ => Ok(bytes),
    }
}

/// Whether an unfinished head may go on.
pub(crate) fn check_unfinished(bytes: &[u8], limits: &HeadLimits) -> Result<(), Refused> {
    let mut line_ends = memchr_iter(b'\n', bytes);
    if !line_ends.all(|at| is_line_end(bytes, at)) {
        return Err(BARE_LF);
    }
    if bytes.len() >= limits.head_bytes_max {
        return Err(TOO_LONG);
    }
    Ok(())
}

/// The fields of a finished head, `head`, of which the parser took `count`.
pub(crate) fn fields<'a>(
    head: &'a [u8],
    count: usize,
    limits: &HeadLimits,
) -> Result<Fields<'a>, Refused> {
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
