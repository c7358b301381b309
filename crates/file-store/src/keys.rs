//! Validation of bucket names, keys and attributes.

use crate::error::{Error, Result};
use crate::object::{ATTRIBUTE_BYTES_MAX, Attributes, KEY_BYTES_MAX};

/// Rejects bucket names that S3 does not allow.
pub(crate) fn check_bucket(bucket: &str) -> Result<()> {
    let bytes = bucket.as_bytes();
    let alphanumeric = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let why = if !(3..=63).contains(&bytes.len()) {
        "it must be 3 to 63 characters long"
    } else if !bytes.iter().all(|b| alphanumeric(Some(b)) || matches!(b, b'.' | b'-')) {
        "it may contain only lower-case letters, digits, dots and hyphens"
    } else if !alphanumeric(bytes.first()) || !alphanumeric(bytes.last()) {
        "it must begin and end with a letter or a digit"
    } else if bucket.contains("..") {
        "it must not contain two adjacent dots"
    } else if bucket.parse::<std::net::Ipv4Addr>().is_ok() {
        "it must not be formatted as an IP address"
    } else {
        return Ok(());
    };
    Err(Error::InvalidBucketName { bucket: bucket.to_owned(), why })
}

/// Rejects empty and too long keys. Any other UTF-8 is a valid key, because keys never become
/// paths.
pub(crate) fn check_key(key: &str) -> Result<()> {
    match key.len() {
        0 => Err(Error::InvalidKey { why: "it is empty" }),
        1..=KEY_BYTES_MAX => Ok(()),
        _ => Err(Error::InvalidKey { why: "it is longer than 1,024 bytes" }),
    }
}

/// Rejects attributes whose total length is too long.
pub(crate) fn check_attributes(attributes: &Attributes) -> Result<()> {
    let bytes = attributes.bytes();
    if bytes <= ATTRIBUTE_BYTES_MAX {
        return Ok(());
    }
    let what = format!("attributes of {bytes} bytes exceed the limit of {ATTRIBUTE_BYTES_MAX}");
    Err(Error::Invalid { what })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_names_follow_the_rules_of_s3() {
        for good in ["abc", "my.bucket-1", "0ab", &"a".repeat(63)] {
            assert!(check_bucket(good).is_ok(), "{good}");
        }
        for bad in ["", "ab", "Abc", "-ab", "ab.", "a..b", "a/b", "192.168.0.1", "ä-b", "a\0b"] {
            assert!(check_bucket(bad).is_err(), "{bad}");
        }
        assert!(check_bucket(&"a".repeat(64)).is_err());
    }

    #[test]
    fn key_is_any_text_of_1_to_1024_bytes() {
        for good in ["a", "../../etc/passwd", "a\0b", "/", &"ä".repeat(512)] {
            assert!(check_key(good).is_ok(), "{good}");
        }
        for bad in ["", &"a".repeat(1025), &"ä".repeat(513)] {
            assert!(check_key(bad).is_err());
        }
    }
}
