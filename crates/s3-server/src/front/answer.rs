//! Completes responses: adds the identifier of the request, which the logs contain, and makes XML
//! safe to parse.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use haul_http_engine::Arrival;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use s3s::{Body, S3Error, S3ErrorCode};

use crate::auth::REGION;
use crate::errors::{incomplete, refuse, sha256_mismatch};
use crate::front::text::between;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-amz-request-id");

/// Generates unique identifiers of requests.
pub(crate) struct RequestIds(AtomicU64);

impl RequestIds {
    /// The identifiers count up from the time of the start, so that those of two runs differ.
    pub(crate) fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(AtomicU64::new(u64::try_from(since.as_nanos()).unwrap_or(0)))
    }

    pub(crate) fn next(&self) -> [u8; 16] {
        let id = self.0.fetch_add(1, Ordering::Relaxed);
        std::array::from_fn(|at| b"0123456789ABCDEF"[(id >> (60 - 4 * at) & 15) as usize])
    }
}

/// Returns the error for a request whose XML the service could not read, if `response` is the one
/// of the service in this case: an error of its own, without a message. `sha256` is the signed hash
/// of the body.
pub(crate) fn error_of_xml_body(
    response: &Response<Body>,
    arrival: &Arrival,
    sha256: Option<&HeaderValue>,
) -> Option<S3Error> {
    let is_message = |part: &[u8]| part == b"<Message>";
    let text = response.body().bytes()?;
    if response.status() != StatusCode::INTERNAL_SERVER_ERROR || text.windows(9).any(is_message) {
        return None;
    }
    let is_hash = |value: &HeaderValue| value.as_bytes().iter().all(u8::is_ascii_hexdigit);
    Some(if arrival.is_cut() {
        incomplete()
    } else if sha256.is_some_and(is_hash) {
        sha256_mismatch()
    } else {
        refuse(S3ErrorCode::InvalidRequest, "The chunks of the body are malformed or badly signed")
    })
}

/// Adds the identifier to a response, and rewrites its XML, if it has any.
pub(crate) fn finish(response: &mut Response<Body>, id: &str) {
    if let Ok(value) = HeaderValue::from_str(id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    let is_xml = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "application/xml");
    // Objects, which may be XML, too, are streams, which have no bytes here.
    let xml = response.body().bytes().filter(|bytes| is_xml && !bytes.is_empty());
    if let Some(better) = xml.and_then(|xml| rewritten(&xml, id)) {
        response.headers_mut().remove(CONTENT_LENGTH);
        *response.body_mut() = Body::from(Bytes::from(better));
    }
}

/// Escapes all control characters in XML, and adds the identifier to an error. Returns `None` if
/// nothing changes.
///
/// Parsers convert a bare carriage return to a line feed, which would change a key. XML 1.0 permits
/// most of the other control characters in no form; they are escaped as S3 does, and clients that
/// need such keys request `encoding-type=url`.
fn rewritten(xml: &[u8], id: &str) -> Option<String> {
    let text = str::from_utf8(xml).ok()?;
    if text.contains("<GetObjectAttributes") {
        // The only response in which S3 has ETags without quotes. It has no free text.
        return Some(text.replace("<ETag>\"", "<ETag>").replace("\"</ETag>", "</ETag>"));
    }
    let needs_escape = |byte: u8| byte < b' ' && byte != b'\t' && byte != b'\n';
    let error = text.strip_suffix("</Error>");
    if error.is_none() && !text.bytes().any(needs_escape) {
        return None;
    }
    let mut better = String::with_capacity(text.len() + 64);
    for char in error.unwrap_or(text).chars() {
        match u8::try_from(char) {
            Ok(byte) if needs_escape(byte) => {
                write!(better, "&#{byte};").expect("a String accepts all text");
            }
            _ => better.push(char),
        }
    }
    if error.is_some() {
        if !better.contains("<Message>") {
            let message = message_of(between(&better, "<Code>", "</Code>"));
            write!(better, "<Message>{message}</Message>").expect("a String accepts all text");
        }
        if better.contains(&format!("expecting '{REGION}'"))
            || better.contains(&format!("expecting &apos;{REGION}&apos;"))
        {
            write!(better, "<Region>{REGION}</Region>").expect("a String accepts all text");
        }
        write!(better, "<RequestId>{id}</RequestId></Error>").expect("a String accepts all text");
    }
    Some(better)
}

/// Returns the message for an error of the S3 service that has none. Clients show it to users.
fn message_of(code: &str) -> &'static str {
    match code {
        "AccessDenied" => "Access denied",
        "BadDigest" => "The body does not match its Content-MD5",
        "EntityTooLarge" => "The body is longer than an object may be",
        "IncompleteBody" => "The body is not as long as it was declared to be",
        "InvalidArgument" => "An argument of the request is invalid",
        "InvalidBucketName" => {
            "A bucket name has 3 to 63 lowercase letters, digits, dots and hyphens"
        }
        "InvalidDigest" => "The Content-MD5 is not a Base64 MD5",
        "InvalidURI" => "The path of the request cannot be decoded",
        "KeyTooLongError" => "The key is too long",
        "MalformedXML" => "The XML of the request is malformed, or has another schema",
        "MethodNotAllowed" => "The method is not allowed for this resource",
        "MissingContentLength" => "The request has no Content-Length",
        "NotImplemented" => "This operation is not supported",
        "RequestTimeTooSkewed" => "The clock of the client differs too much from the server's",
        "SignatureDoesNotMatch" => "The signature does not match: check the secret key",
        _ => "The request was refused",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_control_characters_are_escaped() {
        for (xml, better) in [
            ("<Key>a\rb</Key>", Some("<Key>a&#13;b</Key>")),
            ("<Key>\u{1}ä\u{1f}</Key>", Some("<Key>&#1;ä&#31;</Key>")),
            ("<Key>a\tb\nc &amp; ü</Key>", None),
            (
                "<Error><Code>MethodNotAllowed</Code></Error>",
                Some(
                    "<Error><Code>MethodNotAllowed</Code>\
                     <Message>The method is not allowed for this resource</Message>\
                     <RequestId>7</RequestId></Error>",
                ),
            ),
            (
                "<Error><Message>m\r; expecting 'us-east-1'</Message></Error>",
                Some(
                    "<Error><Message>m&#13;; expecting 'us-east-1'</Message>\
                     <Region>us-east-1</Region><RequestId>7</RequestId></Error>",
                ),
            ),
        ] {
            assert_eq!(rewritten(xml.as_bytes(), "7").as_deref(), better, "{xml:?}");
        }
    }

    #[test]
    fn identifiers_are_unique() {
        let ids = RequestIds::new();
        let (first, second) = (ids.next(), ids.next());
        assert!(first < second, "{first:?} {second:?}");
    }
}
