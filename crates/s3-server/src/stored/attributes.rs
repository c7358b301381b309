//! An object's attributes: their names, and the response headers for them.

use haul_file_store::{ATTRIBUTE_BYTES_MAX, Attributes};
use haul_http1::media_type;

use crate::body::part_checksums::PARTS_ATTRIBUTE;
use crate::errors::{S3ErrorCode, S3Result, refuse};

/// The prefix of user metadata headers and attributes.
pub(crate) const METADATA_PREFIX: &str = "x-amz-meta-";

/// Attributes that are sent as headers with the same names.
pub(crate) const SENT: [&str; 6] = [
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "expires",
    REDIRECT,
];

/// The header and attribute with the location to which an object redirects visitors of a website.
pub(crate) const REDIRECT: &str = "x-amz-website-redirect-location";

/// The content type of an object that was stored without one and whose key has no known extension.
const DEFAULT_CONTENT_TYPE: &str = "binary/octet-stream";

/// The space for the object's checksum in attributes, in bytes.
const CHECKSUM_BYTES_MAX: usize = 512;

/// The space for an encrypted object's part numbers in attributes, in bytes: a bit set in Base64.
const PART_NUMBERS_BYTES_MAX: usize = 1700;

/// Rejects attributes that leave no space for checksums within the store's limit. Part checksums
/// are removed first.
pub(crate) fn check(attributes: &mut Attributes) -> S3Result<()> {
    fit(attributes);
    if leaves_space(attributes) {
        return Ok(());
    }
    let message = format!("The metadata is too large: {} bytes", attributes.bytes());
    Err(refuse(S3ErrorCode::MetadataTooLarge, message))
}

/// Rejects an encrypted upload's attributes that leave no space for the part numbers.
pub(crate) fn check_encrypted(attributes: &Attributes) -> S3Result<()> {
    if attributes.bytes() + CHECKSUM_BYTES_MAX + PART_NUMBERS_BYTES_MAX <= ATTRIBUTE_BYTES_MAX {
        return Ok(());
    }
    let message = format!("The metadata is too large: {} bytes", attributes.bytes());
    Err(refuse(S3ErrorCode::MetadataTooLarge, message))
}

/// Removes the part checksums if they leave no space for the object's checksum.
pub(crate) fn fit(attributes: &mut Attributes) {
    if !leaves_space(attributes) {
        attributes.remove(PARTS_ATTRIBUTE);
    }
}

fn leaves_space(attributes: &Attributes) -> bool {
    attributes.bytes() + CHECKSUM_BYTES_MAX <= ATTRIBUTE_BYTES_MAX
}

/// Returns an object's content type: the stored one, or the type for the key's extension, as
/// clients that send no content type (curl) expect. The derived type is not stored.
pub(crate) fn content_type(attributes: &Attributes, key: &str) -> String {
    match attributes.get("content-type") {
        Some(given) => given.to_owned(),
        None => media_type(key.as_bytes()).unwrap_or(DEFAULT_CONTENT_TYPE).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_content_type_is_derived_from_the_key() {
        let none = Attributes::new();
        assert_eq!(content_type(&none, "a/b.html"), "text/html");
        assert_eq!(content_type(&none, "a/b"), DEFAULT_CONTENT_TYPE);
    }
}
