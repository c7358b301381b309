//! Writes the error responses that the relay generates itself. Performs no I/O.

use std::time::Duration;

use haul_http1::{Date, HeadWriter, HttpError};

/// Writes an error response after which the connection closes; the response to a HEAD request has
/// no body. `retry_after` is rounded to at least one second.
pub(crate) fn write_error(
    out: &mut Vec<u8>,
    refused: HttpError,
    is_head: bool,
    retry_after: Option<Duration>,
    date: &Date,
) {
    let length = refused.reason.len() + 1;
    let mut head = HeadWriter::response(out, refused.status);
    head.date("Date", date)
        .field("Content-Type", b"text/plain; charset=utf-8")
        .number("Content-Length", length as u64)
        .field("Connection", b"close");
    if let Some(time) = retry_after {
        head.number("Retry-After", time.as_secs().max(1));
    }
    // Ending the head cannot fail, because all of its parts are valid.
    let is_written = head.end().is_ok();
    if is_written && !is_head {
        out.extend_from_slice(refused.reason.as_bytes());
        out.push(b'\n');
    }
}
