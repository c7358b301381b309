//! Bucket and object names.

use std::fmt;
use std::net::IpAddr;

/// An object's name, or a bucket's name, whose key is empty. For the list of all buckets, both are
/// empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ObjectName {
    pub(crate) bucket: String,
    pub(crate) key: String,
}

impl ObjectName {
    pub(crate) fn new(bucket: impl Into<String>, key: impl Into<String>) -> Self {
        Self { bucket: bucket.into(), key: key.into() }
    }

    /// Returns the name in a decoded path, such as `/bucket/a/b`.
    pub(crate) fn in_path(path: &str) -> Self {
        let path = path.strip_prefix('/').unwrap_or(path);
        let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
        Self::new(bucket, key)
    }
}

/// The name in messages and logs: `bucket` or `bucket/key`.
impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.bucket)?;
        if self.key.is_empty() { Ok(()) } else { write!(f, "/{}", self.key) }
    }
}

/// Returns `true` for a bucket name that S3 permits.
pub(crate) fn is_bucket_name(name: &str) -> bool {
    let is_end = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let bytes = name.as_bytes();
    (3..64).contains(&bytes.len())
        && bytes.iter().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-'))
        && is_end(bytes.first())
        && is_end(bytes.last())
        && !name.contains("..")
        && !name.starts_with("xn--")
        && name.parse::<IpAddr>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_the_path_without_its_slash() {
        for (path, bucket, key) in [
            ("/", "", ""),
            ("/b", "b", ""),
            ("/b/", "b", ""),
            ("/b/k", "b", "k"),
            ("/b//k/", "b", "/k/"),
            ("*", "*", ""),
        ] {
            assert_eq!(ObjectName::in_path(path), ObjectName::new(bucket, key), "{path}");
        }
        assert_eq!(ObjectName::new("b", "k/l").to_string(), "b/k/l");
        assert_eq!(ObjectName::new("b", "").to_string(), "b");
    }

    #[test]
    fn bucket_names_are_those_of_s3() {
        for name in ["abc", "a.b-c", "1a2", &"a".repeat(63)] {
            assert!(is_bucket_name(name), "{name}");
        }
        for name in
            ["", "ab", "Abc", "a_c", ".ab", "ab-", "a..b", "1.2.3.4", "xn--a", &"a".repeat(64)]
        {
            assert!(!is_bucket_name(name), "{name}");
        }
    }
}
