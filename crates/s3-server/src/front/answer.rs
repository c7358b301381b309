//! What every answer gets before it is sent: an identifier to find it in the log by, and XML that
//! reads back as it was meant.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use s3s::Body;

use crate::auth::REGION;
use crate::front::text::between;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-amz-request-id");

/// Gives every request an identifier of its own.
pub(crate) struct RequestIds(AtomicU64);

impl RequestIds {
    /// They count up from the time of the start, so that those of two runs differ.
    pub(crate) fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(AtomicU64::new(u64::try_from(since.as_nanos()).unwrap_or(0)))
    }

    pub(crate) fn next(&self) -> [u8; 16] {
        let id = self.0.fetch_add(1, Ordering::Relaxed);
        std::array::from_fn(|at| b"0123456789ABCDEF"[(id >> (60 - 4 * at) & 15) as usize])
    }
}

/// Puts the identifier on an answer, and makes its XML, if that is what it is, safe to read.
pub(crate) fn finish(response: &mut Response<Body>, id: &str) {
    if let Ok(value) = HeaderValue::from_str(id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    let is_xml = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "application/xml");
    // Objects, which may be XML as well, are never in memory as a whole: they are streams.
    let xml = response.body().bytes().filter(|bytes| is_xml && !bytes.is_empty());
    if let Some(better) = xml.and_then(|xml| rewritten(&xml, id)) {
        response.headers_mut().remove(CONTENT_LENGTH);
        *response.body_mut() = Body::from(Bytes::from(better));
    }
    if response.status() == StatusCode::INTERNAL_SERVER_ERROR {
        // Damage, above all: the owner should hear of it as well as the client.
        let told = response.body().bytes().unwrap_or_default();
        tracing::error!(id, told = %String::from_utf8_lossy(&told), "a request failed");
    }
}

/// The XML with all control characters escaped, and an error with its identifier; `None` where
/// there is nothing to change.
///
/// Parsers turn a bare carriage return into a line feed, so that a key with one would come back as
/// another key. Most of the other characters no XML 1.0 may have, escaped or not: here we do as S3
/// does, and clients that want such keys ask for `encoding-type=url`.
fn rewritten(xml: &[u8], id: &str) -> Option<String> {
    let text = str::from_utf8(xml).ok()?;
    if text.contains("<GetObjectAttributes") {
        // The one answer in which S3 gives ETags without their quotes. Nothing in it is free text.
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
                write!(better, "&#{byte};").expect("a String takes everything");
            }
            _ => better.push(char),
        }
    }
    if error.is_some() {
        if !better.contains("<Message>") {
            let message = message_of(between(&better, "<Code>", "</Code>"));
            write!(better, "<Message>{message}</Message>").expect("a String takes everything");
        }
        if better.contains(&format!("expecting '{REGION}'"))
            || better.contains(&format!("expecting &apos;{REGION}&apos;"))
        {
            write!(better, "<Region>{REGION}</Region>").expect("a String takes everything");
        }
        write!(better, "<RequestId>{id}</RequestId></Error>").expect("a String takes everything");
    }
    Some(better)
}

/// The message of an error that the S3 service gave none; clients show it to people.
fn message_of(code: &str) -> &'static str {
    match code {
        "AccessDenied" => "Access denied",
        "BadDigest" => "The body does not match its Content-MD5",
        "EntityTooLarge" => "The body is longer than an object may be",
        "IncompleteBody" => "The body is not as long as it was declared to be",
        "InvalidArgument" => "An argument of the request is invalid",
        "InvalidBucketName" => {
            "The name is not one of a bucket: 3 to 63 lowercase letters, digits, dots and hyphens"
        }
        "InvalidDigest" => "The Content-MD5 is not one",
        "InvalidURI" => "The path of the request cannot be decoded",
        "KeyTooLongError" => "The key is too long",
        "MalformedXML" => "The XML of the request is not well-formed, or not what is expected",
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
    fn control_characters_are_escaped_and_the_rest_is_left_alone() {
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
    fn no_two_requests_have_one_identifier() {
        let ids = RequestIds::new();
        let (first, second) = (ids.next(), ids.next());
        assert!(first < second, "{first:?} {second:?}");
    }
}
