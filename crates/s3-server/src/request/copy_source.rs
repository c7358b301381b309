//! A copy's source.

use form_urlencoded::parse;

use crate::errors::{S3ErrorCode, S3Result, invalid_argument, refuse};
use crate::request::head::Head;
use crate::request::name::{ObjectName, is_bucket_name};
use crate::request::operation::COPY_SOURCE;

/// A copy's source, as a request names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CopySource {
    pub(crate) name: ObjectName,
    pub(crate) version: Option<String>,
}

impl CopySource {
    /// Parses the header `x-amz-copy-source`: `bucket/key` or `/bucket/key`, percent-encoded, and
    /// possibly `?versionId=ID`. As in S3, a `+` stands for a blank.
    ///
    /// # Errors
    /// `InvalidArgument`, and `NotImplemented` for an access point.
    pub(crate) fn from_request(head: &Head) -> S3Result<Self> {
        let text = head.fields.text(COPY_SOURCE).unwrap_or_default();
        Self::parse(text)
    }

    fn parse(text: &str) -> S3Result<Self> {
        let invalid = |message: &str| Err(invalid_argument(COPY_SOURCE, text, message));
        if text.starts_with("arn:") {
            let message = "The source must be an object in a bucket, not that of an access point";
            return Err(refuse(S3ErrorCode::NotImplemented, message));
        }
        let (path, query) = text.split_once('?').unwrap_or((text, ""));
        let Some(path) = decode(path) else {
            return invalid("The copy source is not encoded as a URL");
        };
        let path = path.strip_prefix('/').unwrap_or(&path);
        let name = ObjectName::in_path(path);
        if name.bucket.is_empty() || name.key.is_empty() {
            return invalid(
                "Copy Source must mention the source bucket and key: sourcebucket/sourcekey",
            );
        }
        if !is_bucket_name(&name.bucket) {
            return invalid("Invalid copy source bucket name");
        }
        let mut version = None;
        for (parameter, value) in parse(query.as_bytes()) {
            if parameter != "versionId" {
                return invalid(&format!("The copy source has an unknown parameter {parameter}"));
            }
            version = Some(value.into_owned());
        }
        Ok(Self { name, version })
    }
}

fn decode(path: &str) -> Option<String> {
    crate::request::head::decode(&path.replace('+', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_is_an_object_and_possibly_a_version() {
        for (text, bucket, key, version) in [
            ("bucket/key", "bucket", "key", None),
            ("/bucket/a/b", "bucket", "a/b", None),
            ("bucket//key", "bucket", "/key", None),
            ("bucket/a%20b%2Bc%2f%C3%A4", "bucket", "a b+c/\u{e4}", None),
            ("bucket/a+b", "bucket", "a b", None),
            ("bucket/a%3Fb", "bucket", "a?b", None),
            ("bucket/key?versionId=v%2F1", "bucket", "key", Some("v/1")),
            ("bucket/key?versionId=", "bucket", "key", Some("")),
            ("bucket%2Fkey", "bucket", "key", None),
        ] {
            let found = CopySource::parse(text).unwrap();
            let version = version.map(str::to_owned);
            assert_eq!(found, CopySource { name: ObjectName::new(bucket, key), version }, "{text}");
        }
    }

    #[test]
    fn malformed_sources_are_refused() {
        let code = |text: &str| CopySource::parse(text).unwrap_err().code().as_str();
        for text in
            ["", "/", "bucket", "/bucket/", "//key", "B/key", "bucket/%zz", "bucket/k?version=1"]
        {
            assert_eq!(code(text), "InvalidArgument", "{text}");
        }
        assert_eq!(code("arn:aws:s3:us-east-1:1:accesspoint/a/object/k"), "NotImplemented");
    }
}
