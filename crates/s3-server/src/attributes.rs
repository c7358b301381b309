//! Which headers are kept with an object, and under which names: their own, in lower case, so
//! that whoever looks at a store without this server can read them.

use haul_file_store::{ATTRIBUTE_BYTES_MAX, Attributes};
use s3s::dto::{Metadata, Timestamp, TimestampFormat};
use s3s::{S3Error, S3ErrorCode, S3Result};

use crate::checksum::Algorithm;
use crate::errors::refuse;
use crate::tagging;

/// User metadata is kept under its header's name, which begins with this.
const METADATA: &str = "x-amz-meta-";

/// What is sent for an object that was stored without a type and whose name tells none.
const TYPE_UNKNOWN: &str = "application/octet-stream";

/// The headers of a write that are kept.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) cache_control: Option<String>,
    pub(crate) content_disposition: Option<String>,
    pub(crate) content_encoding: Option<String>,
    pub(crate) content_language: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) expires: Option<Timestamp>,
    pub(crate) metadata: Option<Metadata>,
    pub(crate) tagging: Option<String>,
    pub(crate) website_redirect_location: Option<String>,
}

/// Takes the kept headers out of any input of a write.
macro_rules! kept {
    ($input:expr) => {
        $crate::attributes::Kept {
            cache_control: $input.cache_control.take(),
            content_disposition: $input.content_disposition.take(),
            content_encoding: $input.content_encoding.take(),
            content_language: $input.content_language.take(),
            content_type: $input.content_type.take(),
            expires: $input.expires.take(),
            metadata: $input.metadata.take(),
            tagging: $input.tagging.take(),
            website_redirect_location: $input.website_redirect_location.take(),
        }
    };
}
pub(crate) use kept;

impl Kept {
    /// As attributes of the store.
    pub(crate) fn attributes(self) -> S3Result<Attributes> {
        let mut attributes = Attributes::new();
        for (name, value) in [
            ("cache-control", self.cache_control),
            ("content-disposition", self.content_disposition),
            ("content-encoding", self.content_encoding.and_then(|value| at_rest(&value))),
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
            attributes.set(format!("{METADATA}{name}"), value);
        }
        if let Some(tags) = self.tagging {
            tagging::keep(&mut attributes, &tagging::parse(&tags)?);
        }
        check(&attributes)?;
        Ok(attributes)
    }
}

/// Refuses more than the store takes, with room left for checksums.
pub(crate) fn check(attributes: &Attributes) -> S3Result<()> {
    const ROOM_BYTES: usize = 512;
    if attributes.bytes() + ROOM_BYTES <= ATTRIBUTE_BYTES_MAX {
        return Ok(());
    }
    let message = format!("The metadata takes {} bytes, which is too much", attributes.bytes());
    Err(refuse(S3ErrorCode::MetadataTooLarge, message))
}

/// The attribute `name`, to be shown.
pub(crate) fn shown(attributes: &Attributes, name: &str) -> Option<String> {
    attributes.get(name).map(str::to_owned)
}

/// The user metadata among the attributes.
pub(crate) fn metadata(attributes: &Attributes) -> Option<Metadata> {
    let metadata: Metadata = attributes
        .iter()
        .filter_map(|(name, value)| Some((name.strip_prefix(METADATA)?.into(), value.into())))
        .collect();
    (!metadata.is_empty()).then_some(metadata)
}

/// The type to send an object with: the one it was stored with, or one guessed by the extension of
/// its name, which is what people who upload with curl expect. The guess is not stored.
pub(crate) fn content_type(attributes: &Attributes, key: &str) -> String {
    match attributes.get("content-type") {
        Some(given) => given.to_owned(),
        None => mime_guess::from_path(key).first_raw().unwrap_or(TYPE_UNKNOWN).to_owned(),
    }
}

/// The date an object goes stale, as it was given.
pub(crate) fn expires(attributes: &Attributes) -> Option<Timestamp> {
    Timestamp::parse(TimestampFormat::HttpDate, attributes.get("expires")?).ok()
}

/// Adds what describes the bytes of `from`, which a copy shares, to the copy's own attributes.
pub(crate) fn share_checksum(from: &Attributes, to: &mut Attributes) {
    let names = Algorithm::ALL.map(Algorithm::header);
    for name in names.into_iter().chain([crate::checksum::TYPE_ATTRIBUTE]) {
        if let Some(value) = from.get(name) {
            to.set(name, value);
        }
    }
}

/// A content encoding without the framing that ended with the request.
fn at_rest(encoding: &str) -> Option<String> {
    let kept: Vec<_> = encoding
        .split(',')
        .filter(|coding| !coding.trim().eq_ignore_ascii_case("aws-chunked"))
        .collect();
    let kept = kept.join(",").trim().to_owned();
    (!kept.is_empty()).then_some(kept)
}

fn http_date(date: &Timestamp) -> S3Result<String> {
    let mut text = Vec::new();
    date.format(TimestampFormat::HttpDate, &mut text).map_err(S3Error::internal_error)?;
    String::from_utf8(text).map_err(S3Error::internal_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_framing_of_a_request_is_not_kept() {
        for (given, kept) in [
            ("aws-chunked", None),
            ("aws-chunked,gzip", Some("gzip")),
            ("gzip, aws-chunked", Some("gzip")),
            ("gzip", Some("gzip")),
            ("br, gzip", Some("br, gzip")),
            ("aws-chunked, aws-chunked", None),
            ("", None),
        ] {
            assert_eq!(at_rest(given).as_deref(), kept, "{given}");
        }
    }

    #[test]
    fn headers_come_back_as_they_were_given() {
        let date = "Wed, 21 Oct 2015 07:28:00 GMT";
        let kept = Kept {
            content_type: Some("text/x".into()),
            expires: Some(Timestamp::parse(TimestampFormat::HttpDate, date).unwrap()),
            metadata: Some([("a".to_owned(), "Ä".to_owned())].into()),
            tagging: Some("k=v".into()),
            ..Kept::default()
        };
        let attributes = kept.attributes().unwrap();
        assert_eq!(attributes.get("expires"), Some(date));
        assert_eq!(http_date(&expires(&attributes).unwrap()).unwrap(), date);
        assert_eq!(metadata(&attributes).unwrap()["a"], "Ä");
        assert_eq!(content_type(&attributes, "a.png"), "text/x");
        assert_eq!(attributes.iter().count(), 4);
    }

    #[test]
    fn a_missing_type_is_guessed_by_the_name() {
        let none = Attributes::new();
        assert_eq!(content_type(&none, "a/b.html"), "text/html");
        assert_eq!(content_type(&none, "a/b"), TYPE_UNKNOWN);
    }

    #[test]
    fn too_much_metadata_is_refused() {
        let long = "x".repeat(ATTRIBUTE_BYTES_MAX);
        let kept = Kept { metadata: Some([("a".to_owned(), long)].into()), ..Kept::default() };
        assert_eq!(kept.attributes().unwrap_err().code().as_str(), "MetadataTooLarge");
    }
}
