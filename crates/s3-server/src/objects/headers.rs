//! The request headers that are stored as object attributes. An attribute has the name of its
//! header, in lower case, so that other programs can read a store.

use std::borrow::Cow;

use haul_file_store::Attributes;

use crate::answer::rfc2047;
use crate::errors::{S3ErrorCode, S3Result, invalid_argument, refuse};
use crate::request::fields::Fields;
use crate::stored::attributes::{METADATA_PREFIX, REDIRECT, check};
use crate::stored::tags;

/// The storage classes of S3. All objects are stored like the class `STANDARD`.
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

/// The headers that are stored unchanged. `Expires` need not be a date: S3 keeps the text.
const STORED: [&str; 6] = [
    "cache-control",
    "content-disposition",
    "content-language",
    "content-type",
    "expires",
    REDIRECT,
];

const ENCODING: &str = "content-encoding";

/// The header with a new object's storage class.
pub(crate) const STORAGE_CLASS: &str = "x-amz-storage-class";

/// The maximum total length of an object's metadata names and values, in bytes, as in S3.
const METADATA_BYTES_MAX: usize = 2048;

/// The headers of a write that are stored with the object.
#[derive(Debug, Default)]
pub(crate) struct StoredHeaders {
    attributes: Attributes,
    /// The tags, in the form of a query.
    pub(crate) tagging: Option<String>,
}

impl StoredHeaders {
    /// Reads a request's headers.
    ///
    /// # Errors
    /// If a value is invalid, or the metadata is too long.
    pub(crate) fn from_fields(fields: &Fields) -> S3Result<Self> {
        let mut attributes = Attributes::new();
        for name in STORED {
            if let Some(value) = value(fields, name)? {
                attributes.set(name, value);
            }
        }
        if let Some(encoding) = value(fields, ENCODING)?.as_deref().and_then(without_aws_chunked) {
            attributes.set(ENCODING, encoding);
        }
        check_class(fields)?;
        check_redirect(fields)?;
        add_metadata(fields, &mut attributes)?;
        let tagging = value(fields, "x-amz-tagging")?.map(Cow::into_owned);
        Ok(Self { attributes, tagging })
    }

    pub(crate) fn into_attributes(self) -> S3Result<Attributes> {
        let Self { mut attributes, tagging } = self;
        if let Some(tags) = tagging {
            attributes.set_tags(&tags::parse(&tags)?);
        }
        check(&mut attributes)?;
        Ok(attributes)
    }
}

/// Returns a header's value; `None` if it is empty. Several fields with the name of a list become
/// one (RFC 9110, 5.3); a request has at most one field with any other name.
///
/// # Errors
/// If the value is not UTF-8.
fn value<'a>(fields: &'a Fields, name: &'a str) -> S3Result<Option<Cow<'a, str>>> {
    let value = fields.joined(name).filter(|value| !value.is_empty());
    match value {
        Some(value) if fields.all(name).any(|bytes| str::from_utf8(bytes).is_err()) => {
            Err(invalid_argument(name, &value, format!("The header {name} is not UTF-8")))
        }
        value => Ok(value),
    }
}

/// Adds the user metadata. As in HTTP, several fields with the same name become one, with a list of
/// values.
fn add_metadata(fields: &Fields, attributes: &mut Attributes) -> S3Result<()> {
    let mut bytes = 0;
    for (name, _) in fields.iter() {
        let Some(bare) = name.strip_prefix(METADATA_PREFIX).filter(|bare| !bare.is_empty()) else {
            continue;
        };
        if attributes.get(name).is_some() {
            continue;
        }
        let value = fields.joined(name).unwrap_or_default();
        let value = rfc2047::decode(&value);
        bytes += bare.len() + value.len();
        attributes.set(name, value);
    }
    if bytes > METADATA_BYTES_MAX {
        let message = "Your metadata headers exceed the maximum allowed metadata size";
        return Err(refuse(S3ErrorCode::MetadataTooLarge, message)
            .with_field("Size", bytes.to_string())
            .with_field("MaxSizeAllowed", METADATA_BYTES_MAX.to_string()));
    }
    Ok(())
}

fn check_class(fields: &Fields) -> S3Result<()> {
    match fields.given(STORAGE_CLASS) {
        Some(class) if !CLASSES.contains(&class) => {
            let message = format!("There is no storage class \"{class}\"");
            Err(refuse(S3ErrorCode::InvalidStorageClass, message)
                .with_field("StorageClassRequested", class))
        }
        _ => Ok(()),
    }
}

fn check_redirect(fields: &Fields) -> S3Result<()> {
    let is_valid = |target: &str| {
        ["/", "http://", "https://"].iter().any(|begin| target.starts_with(begin))
            && target.len() <= METADATA_BYTES_MAX
    };
    match fields.given(REDIRECT) {
        Some(target) if !is_valid(target) => {
            let message = "The website redirect location must begin with /, http:// or https:// and \
                           have at most 2048 bytes";
            Err(refuse(S3ErrorCode::InvalidRedirectLocation, message))
        }
        _ => Ok(()),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(fields: &[(&str, &str)]) -> S3Result<Vec<(String, String)>> {
        let fields = fields.iter().copied().collect();
        let attributes = StoredHeaders::from_fields(&fields)?.into_attributes()?;
        Ok(attributes.iter().map(|(name, value)| (name.into(), value.into())).collect())
    }

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
    fn fields_are_stored_under_their_names_in_lower_case() {
        let fields = [
            ("Content-Type", "a/b"),
            ("Cache-Control", "c"),
            ("Content-Language", ""),
            ("Content-Disposition", "inline; filename=\"\u{e4}\""),
            ("X-Amz-Meta-One", "1  2"),
            ("X-Amz-Meta-Empty", ""),
            ("x-amz-meta-", "no"),
            ("Cache-Control", "no-store"),
            ("Content-Encoding", "aws-chunked"),
            ("Content-Encoding", "gzip"),
            ("x-amz-meta-two", "a"),
            ("X-Amz-Meta-Two", "b"),
            ("x-amz-meta-word", "=?utf-8?q?=C3=A4?="),
            ("Expires", "Fri, 1 Sep 2034 01:01:01 GMT"),
            ("x-amz-tagging", "b=2&a=1"),
            ("x-amz-storage-class", "GLACIER"),
            ("x-amz-website-redirect-location", "/other"),
        ];
        let expected = [
            ("cache-control", "c,no-store"),
            ("content-disposition", "inline; filename=\"\u{e4}\""),
            ("content-encoding", "gzip"),
            ("content-type", "a/b"),
            ("expires", "Fri, 1 Sep 2034 01:01:01 GMT"),
            ("x-amz-meta-empty", ""),
            ("x-amz-meta-one", "1  2"),
            ("x-amz-meta-two", "a,b"),
            ("x-amz-meta-word", "\u{e4}"),
            ("x-amz-tagging", "a=1&b=2"),
            ("x-amz-website-redirect-location", "/other"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(stored(&fields).unwrap(), expected);
    }

    #[test]
    fn invalid_values_are_refused() {
        let long = "x".repeat(METADATA_BYTES_MAX);
        for (name, value, code) in [
            ("x-amz-meta-a", &*long, "MetadataTooLarge"),
            ("x-amz-storage-class", "COLD", "InvalidStorageClass"),
            ("x-amz-website-redirect-location", "elsewhere", "InvalidRedirectLocation"),
            ("x-amz-tagging", "a=1&a=2", "InvalidArgument"),
            ("x-amz-tagging", "a!=1", "InvalidTag"),
        ] {
            let error = stored(&[(name, value)]).unwrap_err();
            assert_eq!(error.code().as_str(), code, "{name}");
        }
        assert!(stored(&[("x-amz-meta-a", &long[1..])]).is_ok());
        for name in ["cache-control", "content-disposition", "content-encoding"] {
            let mut fields = Fields::default();
            fields.push(name.as_bytes(), b"caf\xe9");
            let error = StoredHeaders::from_fields(&fields).unwrap_err();
            assert_eq!(error.code().as_str(), "InvalidArgument", "{name}");
        }
    }
}
