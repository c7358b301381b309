//! Sends a request to an S3 server that accepts signed requests only.
//!
//! The lowest bit of the first byte is 1 if the request is signed; other bits select a method, the
//! kind of the signature, and whether one digit of it is changed. A signed request consists of four
//! lines: the key of an object, the value of a parameter, that of a field, and the body. Another
//! request is as in `s3_request`. The server must refuse all requests without a right signature.

use crate::servers::RequestParts;
use crate::servers::s3::SIGNED;
use crate::servers::signing::Unsigned;

/// Checks one input.
pub(crate) fn run(data: &[u8]) {
    let Some((flags, rest)) = data.split_first() else { return };
    if flags & 1 == 0 {
        let reply = RequestParts::of(rest).send(SIGNED.address());
        assert!(reply.is_none_or(|reply| reply.status >= 400), "an unsigned request is accepted");
        return;
    }
    let mut lines = rest.splitn(4, |byte| *byte == b'\n');
    let mut text = || String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    let (key, value, meta) = (text(), text(), text());
    let meta: String = meta.chars().filter(|c| matches!(c, ' '..='~')).collect();
    let request = Unsigned {
        method: ["GET", "PUT", "HEAD", "DELETE"][usize::from(flags >> 1 & 3)],
        key: &key,
        query: ("fuzz", &value),
        meta: meta.trim(),
        body: lines.next().unwrap_or_default(),
    };
    let address = SIGNED.address();
    let is_in_query = flags & 8 != 0;
    let mut signed =
        if is_in_query { request.by_query(address) } else { request.by_field(address) };
    let is_changed = flags & 16 != 0;
    if is_changed {
        let text = if is_in_query { &mut signed.line } else { &mut signed.fields };
        let digit = text.trim_end().len() - 1;
        let other = if text[digit..].starts_with('0') { "1" } else { "0" };
        text.replace_range(digit..=digit, other);
    }
    let (line, fields) = (signed.line.as_bytes(), signed.fields.as_bytes());
    let reply = RequestParts { line, fields, body: request.body }.send(address);
    if let Some(reply) = reply {
        let is_refused = matches!(reply.status, 401 | 403);
        let text = String::from_utf8_lossy(&reply.body);
        // Requests may be malformed in other respects, such as a key that is too long.
        assert!(if is_changed { reply.status >= 400 } else { !is_refused }, "{signed:?}: {text}");
    }
}
