//! Parses plain PUTs: of small objects, and of objects of unknown length. Performs no I/O.
//!
//! Anything unusual or invalid about a request makes it no plain PUT: then the S3 service responds.

use haul_file_store::{Attributes, Store};
use haul_http1::{Framing, Request};
use s3s::dto::{StorageClass, Timestamp, TimestampFormat};

use crate::body::digests::Claims;
use crate::errors::check_key;
use crate::front::canonical::from_hex;
use crate::front::signature::STREAMING_UNSIGNED;
use crate::objects::attributes::METADATA_PREFIX;
use crate::objects::headers::StoredHeaders;

/// The value of `x-amz-content-sha256` for a body that is not signed.
const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

const CONTENT_SHA256: &str = "x-amz-content-sha256";
const DECODED_LENGTH: &str = "x-amz-decoded-content-length";

/// The field with the name of an access list.
const LIST: &str = "x-amz-acl";

/// The lists that change nothing for an object that belongs to the owner of its bucket.
const PLAIN_LISTS: [&str; 2] = ["private", "bucket-owner-full-control"];

/// Fields with the prefix `x-amz-` that a plain PUT may have, beside user metadata.
/// The storage class is not stored.
const AMZ_FIELDS: [&str; 16] = [
    LIST,
    "x-amz-checksum-crc32",
    "x-amz-checksum-crc32c",
    "x-amz-checksum-crc64nvme",
    "x-amz-checksum-sha1",
    "x-amz-checksum-sha256",
    CONTENT_SHA256,
    "x-amz-date",
    DECODED_LENGTH,
    "x-amz-sdk-checksum-algorithm",
    "x-amz-security-token",
    "x-amz-storage-class",
    "x-amz-tagging",
    "x-amz-trailer",
    "x-amz-user-agent",
    "x-amz-website-redirect-location",
];

/// The longest value of a field: the service has an error for much longer ones.
const VALUE_BYTES_MAX: usize = 2048;

/// A PUT of an object whose body follows.
pub(super) struct PlainPut {
    pub(super) bucket: String,
    pub(super) key: String,
    pub(super) attributes: Attributes,
    pub(super) claims: Claims,
    /// The length of the object; `None` if the client does not know it.
    pub(super) bytes: Option<u64>,
    /// The body consists of chunks in the format of AWS.
    pub(super) is_chunked: bool,
    /// The request names a list, which a bucket may refuse because of its ownership controls.
    pub(super) has_list: bool,
}

impl PlainPut {
    /// Parses the head of a PUT with these names, which is authorized.
    pub(super) fn parse(
        request: &Request<'_>,
        (bucket, key): (&str, &str),
        is_signed: bool,
    ) -> Option<Self> {
        check_key(key).ok()?;
        let fields = Fields::of(request)?;
        let (sha256, is_chunked) = match fields.text(CONTENT_SHA256) {
            None => (None, false),
            Some(UNSIGNED) => (None, false),
            Some(STREAMING_UNSIGNED) => (None, true),
            // Without credentials, the signatures of chunks are ignored.
            Some(text) if text.starts_with("STREAMING-") && !is_signed => (None, true),
            Some(text) => (Some(from_hex(text)?), false),
        };
        let decoded_bytes = fields.first(DECODED_LENGTH).map(str::parse).transpose().ok()?;
        let bytes = match (is_chunked, request.framing, decoded_bytes) {
            (true, Framing::Length(_) | Framing::Chunked, Some(bytes)) => Some(bytes),
            (false, Framing::Length(bytes), None) => Some(bytes),
            // The service refuses such a request if it is signed.
            (false, Framing::Chunked, None) => None,
            _ => return None,
        };
        let is_short =
            bytes.is_none_or(|bytes| (1..=Store::START_PUT_BYTES_MAX as u64).contains(&bytes));
        // Without chunks, no trailer follows.
        if !is_short || is_chunked != fields.first("x-amz-trailer").is_some() {
            return None;
        }
        let list = fields.text(LIST);
        if list.is_some_and(|list| !PLAIN_LISTS.contains(&list)) {
            return None;
        }
        let claims = Claims::of_fields(|name| fields.first(name), sha256).ok()?;
        let attributes = fields.stored()?.into_attributes().ok()?;
        let (bucket, key) = (bucket.to_owned(), key.to_owned());
        let has_list = list.is_some();
        Some(Self { bucket, key, attributes, claims, bytes, is_chunked, has_list })
    }
}

/// The fields of a request that a PUT interprets, with names in lower case.
struct Fields<'a>(Vec<(String, &'a str)>);

impl<'a> Fields<'a> {
    /// Returns the fields, `None` if one is not plain.
    fn of(request: &Request<'a>) -> Option<Self> {
        let mut fields: Vec<(String, &str)> = Vec::with_capacity(8);
        for field in request.fields {
            // Cache-Control, Content-…, Expires, If-…, X-Amz-…
            if !matches!(field.name.first()?.to_ascii_lowercase(), b'c' | b'e' | b'i' | b'x') {
                continue;
            }
            let name = str::from_utf8(field.name).ok()?.to_ascii_lowercase();
            let is_metadata = name.starts_with(METADATA_PREFIX);
            let is_plain = match name.split('-').next()? {
                "if" => false,
                "x" if name.starts_with("x-amz-") => {
                    is_metadata || AMZ_FIELDS.contains(&name.as_str())
                }
                _ => true,
            };
            let value = str::from_utf8(field.value).ok()?;
            let is_text = value.len() <= VALUE_BYTES_MAX
                && value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
            // Words of RFC 2047 in metadata are decoded by the service.
            let is_encoded = is_metadata && value.contains("=?");
            if !is_plain || !is_text || is_encoded || fields.iter().any(|(found, _)| *found == name)
            {
                return None;
            }
            fields.push((name, value));
        }
        Some(Self(fields))
    }

    /// Returns the value of a field.
    fn first(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| *value)
    }

    /// Returns the value of a field; `None` also for an empty one, as in the service.
    fn text(&self, name: &str) -> Option<&'a str> {
        self.first(name).filter(|value| !value.is_empty())
    }

    /// Returns the fields that are stored with the object; `None` if one is invalid.
    fn stored(&self) -> Option<StoredHeaders> {
        let owned = |name: &str| self.text(name).map(str::to_owned);
        let date = |text| Timestamp::parse(TimestampFormat::HttpDate, text);
        let metadata = self.0.iter().filter_map(|(name, value)| {
            let name = name.strip_prefix(METADATA_PREFIX).filter(|name| !name.is_empty())?;
            Some((name.to_owned(), (*value).to_owned()))
        });
        let metadata: s3s::dto::Metadata = metadata.collect();
        Some(StoredHeaders {
            cache_control: owned("cache-control"),
            content_disposition: owned("content-disposition"),
            content_encoding: owned("content-encoding"),
            content_language: owned("content-language"),
            content_type: owned("content-type"),
            expires: self.text("expires").map(date).transpose().ok()?,
            metadata: (!metadata.is_empty()).then_some(metadata),
            storage_class: owned("x-amz-storage-class").map(StorageClass::from),
            tagging: owned("x-amz-tagging"),
            website_redirect_location: owned("x-amz-website-redirect-location"),
        })
    }
}

#[cfg(test)]
mod tests {
    use haul_http1::{HeadLimits, parse_request};

    use super::*;

    const HASH: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    /// Parses a PUT of 5 bytes with these fields.
    fn parse(fields: &str, is_signed: bool) -> Option<PlainPut> {
        let length = if fields.contains("ransfer-") { "" } else { "Content-Length: 5\r\n" };
        let head = format!("PUT /b/k HTTP/1.1\r\nHost: a\r\n{length}{fields}\r\n");
        let request = parse_request(head.as_bytes(), &HeadLimits::default()).unwrap().unwrap();
        PlainPut::parse(&request, ("bucket", "key"), is_signed)
    }

    fn attributes(fields: &str) -> Vec<(String, String)> {
        let put = parse(fields, true).unwrap();
        put.attributes.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    #[test]
    fn put_with_known_fields_is_plain() {
        for fields in [
            String::new(),
            "Content-MD5: XUFAKrxLKna5cZ2REBfFkg==\r\nX-Amz-Acl: private\r\n".to_owned(),
            format!("User-Agent: a\r\nAccept: b\r\naccept: c\r\nx-amz-content-sha256: {HASH}\r\n"),
            "X-Amz-Checksum-CRC32: AAAAAA==\r\nX-Amz-Sdk-Checksum-Algorithm: CRC32\r\n".to_owned(),
            "Expect: 100-continue\r\nx-amz-content-sha256: UNSIGNED-PAYLOAD\r\n".to_owned(),
        ] {
            let put = parse(&fields, true).unwrap_or_else(|| panic!("{fields}"));
            assert_eq!((put.bytes, put.is_chunked), (Some(5), false), "{fields}");
            assert_eq!(put.has_list, fields.contains("X-Amz-Acl"), "{fields}");
        }
    }

    #[test]
    fn unusual_put_is_not_plain() {
        for fields in [
            "If-None-Match: *\r\n",
            "x-amz-copy-source: /b/k\r\n",
            "x-amz-server-side-encryption: AES256\r\n",
            "x-amz-object-lock-mode: GOVERNANCE\r\n",
            "x-amz-write-offset-bytes: 0\r\n",
            "x-amz-grant-read: a\r\n",
            "x-amz-acl: public-read\r\n",
            "x-amz-acl: public\r\n",
            "x-amz-meta-a: b\r\nX-Amz-Meta-A: b\r\n",
            "x-amz-meta-a: caf\u{e9}\r\n",
            "x-amz-meta-a: =?UTF-8?Q?b?=\r\n",
            "content-type: a\r\ncontent-type: b\r\n",
            "content-type: a\tb\r\n",
            "expires: tomorrow\r\n",
            "content-md5: AAAA\r\n",
            "content-md5:\r\n",
            "x-amz-tagging: a=b&a=c\r\n",
            "x-amz-content-sha256: E3B0\r\n",
            "x-amz-checksum-crc32: a\r\nx-amz-checksum-sha1: b\r\n",
            "x-amz-checksum-crc32: a\r\nx-amz-trailer: x-amz-checksum-crc32\r\n",
            "x-amz-decoded-content-length: 5\r\n",
            "x-amz-decoded-content-length:\r\n",
            "x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD\r\n",
        ] {
            assert!(parse(fields, true).is_none(), "{fields}");
        }
        let long = format!("x-amz-meta-a: {}\r\n", "b".repeat(VALUE_BYTES_MAX + 1));
        assert!(parse(&long, true).is_none());
        let key = "k".repeat(1025);
        let head = "PUT /b/k HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n";
        for (from, to, key) in [("", "", &*key), (": 5", ": 0", "k"), (": 5", ": 8193", "k")] {
            let head = head.replacen(from, to, usize::from(!from.is_empty()));
            let request = parse_request(head.as_bytes(), &HeadLimits::default()).unwrap().unwrap();
            assert!(PlainPut::parse(&request, ("bucket", key), true).is_none(), "{head}");
        }
    }

    #[test]
    fn chunked_put_without_a_length_is_plain() {
        let fields = format!("Transfer-Encoding: chunked\r\nx-amz-content-sha256: {HASH}\r\n");
        let put = parse(&fields, true).unwrap();
        assert_eq!((put.bytes, put.is_chunked), (None, false));
        assert!(parse(&format!("{fields}x-amz-decoded-content-length: 5\r\n"), true).is_none());
    }

    #[test]
    fn unsigned_chunks_are_plain_with_their_trailer_and_length() {
        let fields = |hash: &str| {
            format!(
                "Transfer-Encoding: chunked\r\nContent-Encoding: aws-chunked\r\n\
                 x-amz-content-sha256: {hash}\r\nx-amz-decoded-content-length: 7\r\n\
                 x-amz-trailer: x-amz-checksum-crc32\r\n"
            )
        };
        let put = parse(&fields(STREAMING_UNSIGNED), true).unwrap();
        assert_eq!((put.bytes, put.is_chunked, put.attributes.iter().count()), (Some(7), true, 0));
        let signed = fields("STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER");
        assert!(parse(&signed, true).is_none());
        assert!(parse(&signed, false).unwrap().is_chunked, "signatures of chunks are ignored");
        let without_length = fields(STREAMING_UNSIGNED).replace(": 7", ":");
        assert!(parse(&without_length, true).is_none());
    }

    #[test]
    fn fields_are_stored_under_their_names_in_lower_case() {
        let fields = "Content-Type: a/b\r\nCache-Control: c\r\nContent-Language:\r\n\
                      X-Amz-Meta-One: 1  2\r\nX-Amz-Meta-Empty:\r\nx-amz-meta-: no\r\n\
                      Expires: Wed, 21 Oct 2015 07:28:00 GMT\r\nx-amz-tagging: b=2&a=1\r\n";
        let expected = [
            ("cache-control", "c"),
            ("content-type", "a/b"),
            ("expires", "Wed, 21 Oct 2015 07:28:00 GMT"),
            ("x-amz-meta-empty", ""),
            ("x-amz-meta-one", "1  2"),
            ("x-amz-tagging", "a=1&b=2"),
        ];
        assert_eq!(attributes(fields), expected.map(|(name, value)| (name.into(), value.into())));
    }
}
