//! Signs a request of any kind, with the parameters and fields of the input, and sends it to an S3
//! server that accepts signed requests only: its signature is right for the server, its response is
//! well-formed, and no internal error. With a changed signature it is refused.
//!
//! The input is as in `s3_request`. The target percent-encodes what cannot be in a request line, and
//! leaves out fields that are part of the framing or the signature.

use crate::servers::RequestParts;
use crate::servers::s3::SIGNED;
use crate::servers::signed_request::SignedRequest;

/// Checks one input.
pub(crate) fn run(data: &[u8]) {
    let Some(request) = SignedRequest::of(&RequestParts::of(data)) else { return };
    let address = SIGNED.address();
    let mut signed = request.sign(address);
    let send = |line: &str, fields: &str| {
        let (line, fields) = (line.as_bytes(), fields.as_bytes());
        RequestParts { line, fields, body: request.body }.send(address)
    };
    if let Some(reply) = send(&signed.line, &signed.fields) {
        let text = String::from_utf8_lossy(&reply.body);
        assert!(!text.contains("SignatureDoesNotMatch"), "{signed:?}: {text}");
    }
    let digit = signed.fields.trim_end().len() - 1;
    let other = if signed.fields[digit..].starts_with('0') { "1" } else { "0" };
    signed.fields.replace_range(digit..=digit, other);
    if let Some(reply) = send(&signed.line, &signed.fields) {
        assert!(reply.status >= 400, "a wrong signature is accepted: {signed:?}");
    }
    // The request may have deleted the bucket.
    let line: &[u8] = b"PUT /bucket";
    let bucket = SignedRequest::of(&RequestParts { line, fields: b"", body: b"" });
    let signed = bucket.expect("it is a request").sign(address);
    let reply = send_bucket(address, &signed.line, &signed.fields);
    assert!(matches!(reply, 200 | 409), "{reply}");
}

fn send_bucket(address: std::net::SocketAddr, line: &str, fields: &str) -> u16 {
    let (line, fields) = (line.as_bytes(), fields.as_bytes());
    let reply = RequestParts { line, fields, body: b"" }.send(address);
    reply.expect("the server responds").status
}
