//! Stores an object whose body is in chunks of the S3 API, and reads it again.
//!
//! The first byte is the difference of the declared length to the right one; the rest is the body.

use crate::chunked::decode_aws;
use crate::servers::RequestParts;
use crate::servers::s3::{OPEN, request};

/// Checks one input.
pub(crate) fn run(data: &[u8]) {
    let Some((difference, body)) = data.split_first() else { return };
    let decoded = decode_aws(body);
    let length = decoded.as_ref().map_or(0, Vec::len) + usize::from(*difference);
    let fields = format!(
        "x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER\r\n\
         content-encoding: aws-chunked\r\nx-amz-trailer: x-amz-checksum-crc32c\r\n\
         x-amz-decoded-content-length: {length}\r\n"
    );
    let address = OPEN.address();
    let put = RequestParts { line: b"PUT /bucket/chunked", fields: fields.as_bytes(), body };
    let is_stored = put.send(address).is_some_and(|reply| reply.status == 200);
    if is_stored {
        let found = request(address, "GET /bucket/chunked", b"");
        assert_eq!((found.status, Some(found.body)), (200, decoded));
        assert_eq!(*difference, 0, "the declared length is wrong");
    }
}
