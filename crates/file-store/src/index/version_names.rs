//! The names of the internal buckets with a bucket's versions, and of the keys in them. Pure.
//!
//! A key's current object is in the bucket itself. Older versions and delete markers are in an
//! internal bucket, under keys that sort like the bucket's keys, and within a key from newest to
//! oldest.

use std::borrow::Cow;

use crate::clock::Version;
use crate::object::VersionId;

/// The character that marks the names of internal buckets. No other bucket's name contains it.
const SEPARATOR: char = ':';

const VERSIONS: &str = "versions";
const SUSPENDED: &str = "suspended";
const LOCKED: &str = "locked";
const QUOTA: &str = "quota";
const EVENTS: &str = "events";

/// The character that ends the key in a version's name.
const END: char = '\0';

/// The number of hexadecimal digits in a version number.
const DIGITS: usize = 16;

/// The suffix for a version with the ID `null`.
const NULL: &str = "n";

/// A version's name, without its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VersionName {
    /// The exact version of the needle.
    pub(crate) version: Version,
    pub(crate) is_null: bool,
}

/// Returns the internal bucket with a bucket's versions. It exists if versioning was enabled.
pub(crate) fn versions_bucket(bucket: &str) -> String {
    format!("{bucket}{SEPARATOR}{VERSIONS}")
}

/// Returns the internal bucket that exists while versioning is suspended.
pub(crate) fn suspended_bucket(bucket: &str) -> String {
    format!("{bucket}{SEPARATOR}{SUSPENDED}")
}

/// Returns the internal bucket that exists if object lock is enabled.
pub(crate) fn locked_bucket(bucket: &str) -> String {
    format!("{bucket}{SEPARATOR}{LOCKED}")
}

/// Returns the internal bucket that exists while a bucket has a quota. Its needle contains the
/// quota.
pub(crate) fn quota_bucket(bucket: &str) -> String {
    format!("{bucket}{SEPARATOR}{QUOTA}")
}

/// Returns the bucket whose quota is in this internal bucket.
pub(crate) fn limited_bucket(internal: &str) -> Option<&str> {
    internal.strip_suffix(QUOTA)?.strip_suffix(SEPARATOR)
}

/// Returns the internal bucket with a queue's events.
pub(crate) fn event_queue_bucket(queue: &str) -> String {
    format!("{queue}{SEPARATOR}{EVENTS}")
}

/// Returns the queue whose events are in this internal bucket.
pub(crate) fn event_queue(internal: &str) -> Option<&str> {
    internal.strip_suffix(EVENTS)?.strip_suffix(SEPARATOR)
}

/// Returns an event's key in its queue. Keys sort like the events.
pub(crate) fn event_key(version: Version) -> String {
    format!("{:016x}", version.0)
}

/// Parses the key of an event.
pub(crate) fn parse_event_key(key: &str) -> Option<Version> {
    (key.len() == DIGITS).then(|| u64::from_str_radix(key, 16).ok().map(Version))?
}

/// Returns `true` for an internal bucket's name, which no caller of the store may use.
pub(crate) fn is_internal(bucket: &str) -> bool {
    bucket.contains(SEPARATOR)
}

/// Returns the prefix of all names of a key's versions.
pub(crate) fn key_versions(key: &str) -> String {
    let mut name = escape(key);
    name.push(END);
    name
}

/// Encodes a key, or the beginning of keys, so that [`END`] does not occur. Encoded keys have the
/// same order.
pub(crate) fn escape(key: &str) -> String {
    let mut escaped = String::with_capacity(key.len() + 1 + DIGITS + NULL.len());
    for char in key.chars() {
        match char {
            '\0' => escaped.push_str("\u{1}\u{1}"),
            '\u{1}' => escaped.push_str("\u{1}\u{2}"),
            other => escaped.push(other),
        }
    }
    escaped
}

fn unescape(escaped: &str) -> Option<String> {
    let mut key = String::with_capacity(escaped.len());
    let mut chars = escaped.chars();
    while let Some(char) = chars.next() {
        key.push(match char {
            '\u{1}' => match chars.next()? {
                '\u{1}' => '\0',
                '\u{2}' => '\u{1}',
                _ => return None,
            },
            other => other,
        });
    }
    Some(key)
}

impl VersionName {
    pub(crate) fn id(self) -> VersionId {
        VersionId::of(!self.is_null, self.version.0)
    }

    /// Returns a version's key in the internal bucket.
    pub(crate) fn key_in_bucket(self, key: &str) -> String {
        let null = if self.is_null { NULL } else { "" };
        format!("{}{:016x}{null}", key_versions(key), !self.version.0)
    }

    /// Parses the part of a name after [`key_versions`].
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (digits, suffix) = text.split_at_checked(DIGITS)?;
        let version = Version(!u64::from_str_radix(digits, 16).ok()?);
        (suffix.is_empty() || suffix == NULL).then(|| Self { version, is_null: suffix == NULL })
    }
}

/// Splits a key in the internal bucket into the object's key and the version's name.
pub(crate) fn split_version(name: &str) -> Option<(String, VersionName)> {
    let (escaped, version) = name.split_once(END)?;
    Some((unescape(escaped)?, VersionName::parse(version)?))
}

/// Returns the bucket and the key whose lock protects a needle. A version is protected by its
/// object's lock, and all events of a queue by the queue's.
pub(crate) fn owner<'a>(bucket: &'a str, key: &'a str) -> (Cow<'a, str>, Cow<'a, str>) {
    if event_queue(bucket).is_some() {
        return (Cow::Borrowed(bucket), Cow::Borrowed(""));
    }
    let version_owner = || {
        let (owner, _) = bucket.split_once(SEPARATOR)?;
        let key = split_version(key).map_or(Cow::Borrowed(key), |(key, _)| key.into());
        Some((Cow::Borrowed(owner), key))
    };
    version_owner().unwrap_or((Cow::Borrowed(bucket), Cow::Borrowed(key)))
}

/// Returns a bucket's, a key's and a version's name for messages.
pub(crate) fn readable(bucket: &str, key: &str) -> (String, String) {
    let names = || {
        let (bucket, kind) = bucket.split_once(SEPARATOR)?;
        match (kind, split_version(key)) {
            (VERSIONS, Some((key, name))) => {
                Some((bucket.to_owned(), format!("{key} (version {})", name.id())))
            }
            _ => Some((bucket.to_owned(), key.to_owned())),
        }
    };
    names().unwrap_or_else(|| (bucket.to_owned(), key.to_owned()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::object::KEY_BYTES_MAX;

    #[test]
    fn names_of_internal_buckets_are_no_names_of_buckets() {
        let functions =
            [versions_bucket, suspended_bucket, locked_bucket, quota_bucket, event_queue_bucket];
        for name in functions.map(|name| name("bucket")) {
            assert!(is_internal(&name));
            assert!(crate::keys::check_bucket(&name).is_err());
        }
        assert!(!is_internal("my.bucket-1"));
        assert_eq!(limited_bucket(&quota_bucket("bucket")), Some("bucket"));
        for other in ["quota", "my-quota", &versions_bucket("quota")] {
            assert_eq!(limited_bucket(other), None, "{other}");
        }
    }

    #[test]
    fn longest_name_fits_into_a_needle() {
        let name = VersionName { version: Version(7), is_null: true };
        let longest = name.key_in_bucket(&"\0".repeat(KEY_BYTES_MAX));
        assert!(longest.len() <= usize::from(u16::MAX), "{}", longest.len());
        assert!(versions_bucket(&"b".repeat(63)).len() <= usize::from(u8::MAX));
    }

    #[test]
    fn messages_have_the_key_and_the_version() {
        let name = VersionName { version: Version(0x1f), is_null: false }.key_in_bucket("a\0b");
        let expected = ("bucket".to_owned(), "a\0b (version 000000000000001f)".to_owned());
        assert_eq!(readable("bucket:versions", &name), expected);
        assert_eq!(readable("bucket", "key"), ("bucket".to_owned(), "key".to_owned()));
    }

    proptest! {
        #[test]
        fn names_are_parsed_back_and_sort_by_key_and_age(
            first in "[\0\u{1}\u{2}ab\u{10ffff}]{1,5}",
            second in "[\0\u{1}\u{2}ab\u{10ffff}]{1,5}",
            versions: (u64, u64),
            is_null: bool,
        ) {
            let [one, two] = [versions.0, versions.1]
                .map(|version| VersionName { version: Version(version), is_null });
            prop_assert_eq!(split_version(&one.key_in_bucket(&first)), Some((first.clone(), one)));
            let expected = first.cmp(&second).then(versions.1.cmp(&versions.0));
            prop_assert_eq!(one.key_in_bucket(&first).cmp(&two.key_in_bucket(&second)), expected);
            prop_assert_eq!(escape(&first).starts_with(&escape(&second)), first.starts_with(&*second));
        }
    }
}
