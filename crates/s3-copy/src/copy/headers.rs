//! Selects the headers of an object that are stored with its copy.

use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::client::md5_from_hex;
use crate::model::part_count;

/// The headers that are stored as they are.
const STORED: [&str; 7] = [
    "content-type",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "expires",
    "x-amz-website-redirect-location",
];

const METADATA: &str = "x-amz-meta-";
const LOCK_MODE: &str = "x-amz-object-lock-mode";
const LOCK_UNTIL: &str = "x-amz-object-lock-retain-until-date";
const LEGAL_HOLD: &str = "x-amz-object-lock-legal-hold";

/// Returns the headers of a request that stores a copy, from those of the response that has the
/// object. A retention that has ended cannot be set, and has no effect.
pub(super) fn stored(response: &HeaderMap, now: OffsetDateTime) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in response {
        if STORED.contains(&name.as_str()) || name.as_str().starts_with(METADATA) {
            headers.append(name.clone(), value.clone());
        }
    }
    if let Some(coding) = headers.get("content-encoding").map(without_chunks) {
        match coding {
            Some(coding) => headers.insert("content-encoding", coding),
            None => headers.remove("content-encoding"),
        };
    }
    if let (Some(mode), Some(until)) = (response.get(LOCK_MODE), response.get(LOCK_UNTIL)) {
        let time = until.to_str().ok().and_then(|text| OffsetDateTime::parse(text, &Rfc3339).ok());
        if time.is_none_or(|time| time > now) {
            headers.insert(HeaderName::from_static(LOCK_MODE), mode.clone());
            headers.insert(HeaderName::from_static(LOCK_UNTIL), until.clone());
        }
    }
    if let Some(hold) = response.get(LEGAL_HOLD).filter(|hold| *hold == "ON") {
        headers.insert(HeaderName::from_static(LEGAL_HOLD), hold.clone());
    }
    headers
}

/// Returns a coding without `aws-chunked`, the framing of the upload, which some servers store.
fn without_chunks(coding: &HeaderValue) -> Option<HeaderValue> {
    let Ok(text) = coding.to_str() else { return Some(coding.clone()) };
    let codings =
        text.split(',').map(str::trim).filter(|it| !it.is_empty() && *it != "aws-chunked");
    let codings = codings.collect::<Vec<_>>().join(",");
    HeaderValue::from_str(&codings).ok().filter(|codings| !codings.is_empty())
}

/// The ETag of an object at the source, and whether the target must compute the same one.
#[derive(Debug, Clone)]
pub(super) struct SourceEtag {
    pub(super) text: String,
    pub(super) is_comparable: bool,
}

impl SourceEtag {
    /// Returns the ETag of a response with an object.
    pub(super) fn new(response: &HeaderMap) -> Self {
        let text = |name: &str| response.get(name).and_then(|it| it.to_str().ok()).unwrap_or("");
        let etag = text("etag").trim_matches('"').to_owned();
        let encryption = text("x-amz-server-side-encryption");
        let is_minio = text("server").starts_with("MinIO");
        let is_whole = md5_from_hex(&etag).is_some();
        let is_parts = etag.rsplit_once('-').is_some_and(|(md5, _)| md5_from_hex(md5).is_some())
            && part_count(&etag).is_some();
        // MinIO computes the ETag of an upload in parts from encrypted bytes.
        let is_encrypted = encryption.starts_with("aws:")
            || response.contains_key("x-amz-server-side-encryption-customer-algorithm")
            || is_minio && is_parts && !encryption.is_empty();
        let is_comparable = (is_whole || is_parts) && !is_encrypted;
        Self { text: etag, is_comparable }
    }

    /// Returns the value of `Content-MD5` if the ETag is the MD5 of the content.
    pub(super) fn content_md5(&self) -> Option<HeaderValue> {
        let md5 = md5_from_hex(&self.text).filter(|_| self.is_comparable)?;
        let text = base64_simd::STANDARD.encode_type::<String>(&md5);
        HeaderValue::from_maybe_shared(Bytes::from(text)).ok()
    }

    /// `true` if the ETag of the target need not be the same.
    pub(super) fn is_opaque(&self) -> bool {
        !self.is_comparable
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
            })
            .collect()
    }

    #[test]
    fn headers_of_the_object_are_stored_and_others_are_not() {
        let response = headers(&[
            ("content-type", "a/b"),
            ("content-encoding", "aws-chunked, gzip"),
            ("x-amz-meta-a", "1"),
            ("x-amz-request-id", "2"),
            ("date", "x"),
            (LOCK_MODE, "GOVERNANCE"),
            (LOCK_UNTIL, "2026-01-02T00:00:00Z"),
            (LEGAL_HOLD, "ON"),
        ]);
        let kept = stored(&response, datetime!(2026-01-01 0:00 UTC));
        assert_eq!((kept.len(), &kept["content-encoding"]), (6, &HeaderValue::from_static("gzip")));
        let later = stored(&response, datetime!(2026-01-03 0:00 UTC));
        assert!(later.len() == 4 && later.contains_key(LEGAL_HOLD));
        let chunks = headers(&[("content-encoding", "aws-chunked"), (LEGAL_HOLD, "OFF")]);
        assert!(stored(&chunks, datetime!(2026-01-01 0:00 UTC)).is_empty());
    }

    #[test]
    fn etags_of_encrypted_objects_are_opaque() {
        let md5 = "d41d8cd98f00b204e9800998ecf8427e";
        let parts = format!("{md5}-2");
        for (etag, encryption, server, is_comparable, has_md5) in [
            (md5, "", "", true, true),
            (md5, "AES256", "MinIO", true, true),
            (md5, "aws:kms", "", false, false),
            (&parts, "", "", true, false),
            (&parts, "AES256", "AmazonS3", true, false),
            (&parts, "AES256", "MinIO", false, false),
            ("0x8D", "", "", false, false),
        ] {
            let mut response = headers(&[("server", server)]);
            response.insert("etag", HeaderValue::from_str(&format!("\"{etag}\"")).unwrap());
            if !encryption.is_empty() {
                let value = HeaderValue::from_str(encryption).unwrap();
                response.insert("x-amz-server-side-encryption", value);
            }
            let found = SourceEtag::new(&response);
            assert_eq!(found.is_opaque(), !is_comparable, "{etag} {encryption} {server}");
            assert_eq!(found.content_md5().is_some(), has_md5, "{etag} {encryption} {server}");
        }
    }
}
