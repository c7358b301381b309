//! Signs requests by AWS Signature Version 4, apart from the server's own code.

use std::fmt::Write;
use std::net::SocketAddr;
use std::time::SystemTime;

use haul_line_log::Utc;
use ring::{digest, hmac};

use super::s3::{ACCESS_KEY, SECRET_KEY};

/// A request to sign.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unsigned<'a> {
    /// The method.
    pub(crate) method: &'a str,
    /// The key of the object.
    pub(crate) key: &'a str,
    /// The name and the value of a query parameter.
    pub(crate) query: (&'a str, &'a str),
    /// The value of the field `x-amz-meta-a`: printable ASCII without spaces at its ends. A
    /// presigned URL does not have it.
    pub(crate) meta: &'a str,
    /// The body.
    pub(crate) body: &'a [u8],
}

/// The line and the fields of a signed request.
#[derive(Debug)]
pub(crate) struct Signed {
    /// The method, a space and the target.
    pub(crate) line: String,
    /// The fields, each with its line end.
    pub(crate) fields: String,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

/// Encodes all bytes of a text but letters, digits, `-._~`, and `/` if it is `kept`.
pub(super) fn encoded(text: &str, kept: char) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        let character = char::from(byte);
        if character.is_ascii_alphanumeric() || "-._~".contains(character) || character == kept {
            out.push(character);
        } else {
            write!(out, "%{byte:02X}").unwrap();
        }
    }
    out
}

/// Returns the day and the time of now, such as `20261126` and `20261126T181500Z`.
pub(crate) fn now() -> (String, String) {
    let Utc { year, month, day, hour, minute, second, .. } = Utc::of(SystemTime::now());
    let day = format!("{year:04}{month:02}{day:02}");
    let time = format!("{day}T{hour:02}{minute:02}{second:02}Z");
    (day, time)
}

pub(super) fn signature(day: &str, time: &str, canonical: &str) -> String {
    let scope = format!("{day}/us-east-1/s3/aws4_request");
    let hash = sha256(canonical.as_bytes());
    signature_of(day, &format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{hash}"))
}

/// Returns the signature of a text, which is the policy of a form or describes a request.
pub(crate) fn signature_of(day: &str, text: &str) -> String {
    let key = [day, "us-east-1", "s3", "aws4_request"]
        .into_iter()
        .fold(format!("AWS4{SECRET_KEY}").into_bytes(), |key, part| hmac(&key, part));
    hex(&hmac(&key, text))
}

impl Unsigned<'_> {
    fn path(&self) -> String {
        format!("/bucket/{}", encoded(self.key, '/'))
    }

    fn parameter(&self) -> (String, String) {
        (encoded(self.query.0, '-'), encoded(self.query.1, '-'))
    }

    /// Signs the request by the field `authorization`.
    pub(crate) fn by_field(&self, address: SocketAddr) -> Signed {
        let ((day, time), path) = (now(), self.path());
        let (name, value) = self.parameter();
        let (method, body_hash) = (self.method, sha256(self.body));
        let words: Vec<_> = self.meta.split(' ').filter(|word| !word.is_empty()).collect();
        let signed_fields = "host;x-amz-content-sha256;x-amz-date;x-amz-meta-a";
        let canonical = format!(
            "{method}\n{path}\n{name}={value}\nhost:{address}\nx-amz-content-sha256:{body_hash}\n\
             x-amz-date:{time}\nx-amz-meta-a:{}\n\n{signed_fields}\n{body_hash}",
            words.join(" ")
        );
        let signature = signature(&day, &time, &canonical);
        let fields = format!(
            "x-amz-content-sha256: {body_hash}\r\nx-amz-date: {time}\r\nx-amz-meta-a: {}\r\n\
             authorization: AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/{day}/us-east-1/s3/\
             aws4_request, SignedHeaders={signed_fields}, Signature={signature}\r\n",
            self.meta
        );
        Signed { line: format!("{method} {path}?{name}={value}"), fields }
    }

    /// Signs the request by parameters of its URL.
    pub(crate) fn by_query(&self, address: SocketAddr) -> Signed {
        let ((day, time), path) = (now(), self.path());
        let credential = format!("{ACCESS_KEY}/{day}/us-east-1/s3/aws4_request");
        let (credential, method) = (encoded(&credential, '-'), self.method);
        let (name, value) = self.parameter();
        let mut parameters = [
            ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
            ("X-Amz-Credential", &credential),
            ("X-Amz-Date", &time),
            ("X-Amz-Expires", "600"),
            ("X-Amz-SignedHeaders", "host"),
            (&name, &value),
        ];
        parameters.sort_unstable();
        let query: Vec<_> =
            parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let query = query.join("&");
        let canonical =
            format!("{method}\n{path}\n{query}\nhost:{address}\n\nhost\nUNSIGNED-PAYLOAD");
        let signature = signature(&day, &time, &canonical);
        let line = format!("{method} {path}?{query}&X-Amz-Signature={signature}");
        Signed { line, fields: String::new() }
    }
}
