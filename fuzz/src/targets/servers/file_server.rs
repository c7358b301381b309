//! Sends a request to a file server: its response is well-formed, has no bytes of files that are
//! not served, and the parts of a file that it declares.
//!
//! The input is a method and a target, fields, an empty line, and a body. It is sent with the
//! fields that each request needs.

use crate::servers::RequestParts;
use crate::servers::files::{CONTENT, SECRET, SERVER};

/// Returns the range of bytes in a field such as `bytes 0-9/1000`.
fn declared(content_range: &[u8]) -> Option<std::ops::RangeInclusive<usize>> {
    let text = str::from_utf8(content_range).ok()?;
    let (range, length) = text.strip_prefix("bytes ")?.split_once('/')?;
    assert_eq!(length, CONTENT.len().to_string());
    let (first, last) = range.split_once('-')?;
    Some(first.parse().ok()?..=last.parse().ok()?)
}

/// Checks one input.
pub(crate) fn run(data: &[u8]) {
    let request = RequestParts::of(data);
    let Some(reply) = request.send(SERVER.address) else { return };
    let has_secret = reply.body.windows(SECRET.len()).any(|part| part == SECRET);
    assert!(!has_secret, "a file outside the directory, or a hidden one, is served");
    if !matches!(request.line, b"GET /file" | b"HEAD /file") {
        return;
    }
    let is_head = request.line.starts_with(b"HEAD");
    match reply.status {
        200 => assert!(is_head || reply.body == *CONTENT),
        206 => {
            // Several ranges are a multipart body, which has no such field of its own.
            if let Some(range) = reply.field("content-range").and_then(declared) {
                assert!(is_head || reply.body == CONTENT[range]);
            }
        }
        status => assert!(status == 304 || (400..500).contains(&status), "{status}"),
    }
}
