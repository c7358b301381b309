//! The request headers that are stored as attributes of an object. An attribute has the name of its
//! header, in lower case, so that other programs can read a store.

use haul_file_store::Attributes;
use s3s::dto::{Metadata, StorageClass, Timestamp, TimestampFormat};
use s3s::{S3ErrorCode, S3Result};

use crate::errors::refuse;
use crate::objects::attributes::{METADATA_PREFIX, check};
use crate::objects::tagging;

/// The storage classes of S3. All objects are stored as those of the class `STANDARD`.
const CLASSES: [&str; 12] = [
    "DEEP_ARCHIVE",
    "EXPRESS_ONEZONE",
    "FSX_OPENZFS",
    "GLACIER",
    "GLACIER_IR",
    "INTELLIGENT_TIERING",
    "ONEZONE_IA",
    "OUTPOSTS",
    "REDUCED_REDUNDANCY",
    "SNOW",
    "STANDARD",
    "STANDARD_IA",
];

/// The headers of a write that are stored with the object.
#[derive(Debug, Default)]
pub(crate) struct StoredHeaders {
    pub(crate) cache_control: Option<String>,
    pub(crate) content_disposition: Option<String>,
    pub(crate) content_encoding: Option<String>,
    pub(crate) content_language: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) expires: Option<Timestamp>,
    pub(crate) metadata: Option<Metadata>,
    /// Not stored: all objects have the same class.
    pub(crate) storage_class: Option<StorageClass>,
    pub(crate) tagging: Option<String>,
    pub(crate) website_redirect_location: Option<String>,
}

/// Takes the headers to store out of the input of a write.
macro_rules! stored_headers {
    ($input:expr) => {
        $crate::objects::headers::StoredHeaders {
            cache_control: $input.cache_control.take(),
            content_disposition: $input.content_disposition.take(),
            content_encoding: $input.content_encoding.take(),
            content_language: $input.content_language.take(),
            content_type: $input.content_type.take(),
            expires: $input.expires.take(),
            metadata: $input.metadata.take(),
            storage_class: $input.storage_class.take(),
            tagging: $input.tagging.take(),
            website_redirect_location: $input.website_redirect_location.take(),
        }
    };
}
pub(crate) use stored_headers;

impl StoredHeaders {
    /// Returns the headers as attributes of the store.
    pub(crate) fn into_attributes(self) -> S3Result<Attributes> {
        if let Some(class) = self.storage_class.filter(|it| !CLASSES.contains(&it.as_str())) {
            let message = format!("There is no storage class \"{}\"", class.as_str());
            return Err(refuse(S3ErrorCode::InvalidStorageClass, message));
        }
        let mut attributes = Attributes::new();
        for (name, value) in [
            ("cache-control", self.cache_control),
            ("content-disposition", self.content_disposition),
            (
                "content-encoding",
                self.content_encoding.and_then(|value| without_aws_chunked(&value)),
            ),
            ("content-language", self.content_language),
            ("content-type", self.content_type),
            ("expires", self.expires.map(|date| http_date(&date)).transpose()?),
            ("x-amz-website-redirect-location", self.website_redirect_location),
        ] {
            if let Some(value) = value {
                attributes.set(name, value);
            }
        }
        for (name, value) in self.metadata.unwrap_or_default() {
            attributes.set(format!("{METADATA_PREFIX}{name}"), value);
        }
        if let Some(tags) = self.tagging {
            attributes.set_tags(&tagging::parse(&tags)?);
        }
        check(&mut attributes)?;
        Ok(attributes)
    }
}

/// Returns a content encoding without `aws-chunked`, which applies to the request only.
fn without_aws_chunked(encoding: &str) -> Option<String> {
    let kept: Vec<_> = encoding
        .split(',')
        .filter(|coding| !coding.trim().eq_ignore_ascii_case("aws-chunked"))
        .collect();
    let kept = kept.join(",").trim().to_owned();
    (!kept.is_empty()).then_some(kept)
}

fn http_date(date: &Timestamp) -> S3Result<String> {
    let mut text = Vec::new();
    let invalid =
        || refuse(S3ErrorCode::InvalidArgument, "Expires is not a date that HTTP can have");
    date.format(TimestampFormat::HttpDate, &mut text).map_err(|_unwritable| invalid())?;
    String::from_utf8(text).map_err(|_unwritable| invalid())
}

#[cfg(test)]
mod tests {
    use haul_file_store::ATTRIBUTE_BYTES_MAX;

    use super::*;
    use crate::objects::attributes::{content_type, expires, metadata};

    #[test]
    fn aws_chunked_encoding_is_not_stored() {
        for (given, kept) in [
            ("aws-chunked", None),
            ("aws-chunked,gzip", Some("gzip")),
            ("gzip, aws-chunked", Some("gzip")),
            ("gzip", Some("gzip")),
            ("br, gzip", Some("br, gzip")),
            ("aws-chunked, aws-chunked", None),
            ("", None),
        ] {
            assert_eq!(without_aws_chunked(given).as_deref(), kept, "{given}");
        }
    }

    #[test]
    fn stored_headers_are_returned_unchanged() {
        let date = "Wed, 21 Oct 2015 07:28:00 GMT";
        let kept = StoredHeaders {
            content_type: Some("text/x".into()),
            expires: Some(Timestamp::parse(TimestampFormat::HttpDate, date).unwrap()),
            metadata: Some([("a".to_owned(), "Ä".to_owned())].into()),
            tagging: Some("k=v".into()),
            ..StoredHeaders::default()
        };
        let attributes = kept.into_attributes().unwrap();
        assert_eq!(attributes.get("expires"), Some(date));
        assert_eq!(http_date(&expires(&attributes).unwrap()).unwrap(), date);
        assert_eq!(metadata(&attributes).unwrap()["a"], "Ä");
        assert_eq!(content_type(&attributes, "a.png"), "text/x");
        assert_eq!(attributes.iter().count(), 4);
    }

    #[test]
    fn oversized_metadata_is_refused() {
        let long = "x".repeat(ATTRIBUTE_BYTES_MAX);
        let kept = StoredHeaders {
            metadata: Some([("a".to_owned(), long)].into()),
            ..StoredHeaders::default()
        };
        assert_eq!(kept.into_attributes().unwrap_err().code().as_str(), "MetadataTooLarge");
    }
}
