//! Sends a request to an S3 server without credentials: its response is well-formed, and no
//! internal error; and the server still works.
//!
//! The input is a method and a target, fields, an empty line, and a body. It is sent with the
//! fields that each request needs.

use crate::servers::RequestParts;
use crate::servers::s3::{OPEN, request};

/// Checks one input.
pub(crate) fn run(data: &[u8]) {
    let address = OPEN.address();
    drop(RequestParts::of(data).send(address));
    let probe = request(address, "PUT /bucket/probe", b"probe");
    // A request may have deleted the bucket.
    if probe.status == 200 {
        let found = request(address, "GET /bucket/probe", b"");
        assert_eq!((found.status, &found.body[..]), (200, &b"probe"[..]));
    } else {
        assert_eq!(probe.status, 404, "{}", String::from_utf8_lossy(&probe.body));
        request(address, "PUT /bucket", b"");
    }
}
