//! Signs requests with AWS Signature Version 4.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use ring::{digest, hmac};
use time::OffsetDateTime;
use time::macros::format_description;

use super::encode::{hex, push_encoded};
use crate::options::Credentials;

/// The hash of a body that is not signed.
pub(super) const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

/// Returns the hash of a body, for its signature.
pub(super) fn body_hash(body: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, body).as_ref())
}

/// What is signed of a request, apart from its headers.
pub(super) struct Target<'a> {
    pub(super) method: &'a str,
    pub(super) host: &'a str,
    pub(super) bucket: &'a str,
    pub(super) key: &'a str,
    pub(super) query: &'a str,
    /// The SHA-256 of the body in hexadecimal digits, or [`UNSIGNED`].
    pub(super) body_hash: &'a str,
}

/// Adds the headers of a signature.
pub(super) fn sign(
    headers: &mut HeaderMap,
    target: &Target<'_>,
    keys: &Credentials,
    region: &str,
    now: OffsetDateTime,
) {
    let form = format_description!("[year][month][day]T[hour][minute][second]Z");
    let time = now.format(form).unwrap_or_default();
    let date = time.get(..8).unwrap_or_default();
    insert(headers, "x-amz-date", &time);
    insert(headers, "x-amz-content-sha256", target.body_hash);
    let (canonical, signed) = canonical_request(headers, target);
    let scope = format!("{date}/{region}/s3/aws4_request");
    let hash = body_hash(canonical.as_bytes());
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{hash}");
    let mut key = format!("AWS4{}", keys.secret_key).into_bytes();
    for part in [date, region, "s3", "aws4_request"] {
        key = mac(&key, part);
    }
    let signature = hex(&mac(&key, &text));
    let access = &keys.access_key;
    let value = format!(
        "AWS4-HMAC-SHA256 Credential={access}/{scope}, SignedHeaders={signed}, Signature={signature}"
    );
    insert(headers, "authorization", &value);
}

fn insert(headers: &mut HeaderMap, name: &'static str, value: &str) {
    // A key with control characters, which no server has, leaves the request unsigned.
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(HeaderName::from_static(name), value);
    }
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    hmac::sign(&key, text.as_bytes()).as_ref().to_vec()
}

/// Returns the canonical request, and the names of its headers.
fn canonical_request(headers: &HeaderMap, target: &Target<'_>) -> (String, String) {
    let Target { method, host, bucket, key, query, body_hash } = target;
    let mut text = format!("{method}\n/");
    push_encoded(&mut text, bucket, true);
    if !key.is_empty() {
        text.push('/');
        push_encoded(&mut text, key, true);
    }
    text += &format!("\n{query}\n");
    let mut lines = vec![("host", (*host).to_owned())];
    for name in headers.keys() {
        let values: Vec<_> = headers.get_all(name).iter().map(collapsed).collect();
        lines.push((name.as_str(), values.join(",")));
    }
    lines.sort_unstable();
    for (name, value) in &lines {
        text += &format!("{name}:{value}\n");
    }
    let names: Vec<_> = lines.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    text += &format!("\n{names}\n{body_hash}");
    (text, names)
}

/// Returns a value without blanks at its ends, and with one space for each run of blanks inside.
fn collapsed(value: &HeaderValue) -> String {
    let text = String::from_utf8_lossy(value.as_bytes());
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    /// The example "GET Object" of the S3 reference.
    #[test]
    fn signature_is_that_of_the_reference() {
        let keys = Credentials {
            access_key: "AKIAIOSFODNN7EXAMPLE".to_owned(),
            secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned(),
        };
        let mut headers = HeaderMap::new();
        headers.insert("range", HeaderValue::from_static("bytes=0-9"));
        let target = Target {
            method: "GET",
            host: "examplebucket.s3.amazonaws.com",
            bucket: "test.txt",
            key: "",
            query: "",
            body_hash: &body_hash(b""),
        };
        sign(&mut headers, &target, &keys, "us-east-1", datetime!(2013-05-24 0:00 UTC));
        let found = headers["authorization"].to_str().unwrap();
        let expected = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41";
        assert!(found.ends_with(expected), "{found}");
    }
}
