//! What the relay answers by itself: why it does not pass on a request. Pure.

use haul_http1::{Date, HeadWriter, Refused};

/// Writes an answer after which the connection ends. To a HEAD it has no body.
pub(crate) fn write(out: &mut Vec<u8>, refused: Refused, is_head: bool, date: &Date) {
    let length = refused.reason.len() + 1;
    let mut head = HeadWriter::response(out, refused.status);
    head.date("Date", date)
        .field("Content-Type", b"text/plain; charset=utf-8")
        .number("Content-Length", length as u64)
        .field("Connection", b"close");
    // All of it is ours, and can be written.
    let is_written = head.end().is_ok();
    if is_written && !is_head {
        out.extend_from_slice(refused.reason.as_bytes());
        out.push(b'\n');
    }
}
