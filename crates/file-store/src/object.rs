//! What the store says about objects, buckets and uploads.

use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

/// The longest key, in bytes of UTF-8 (as in S3).
pub const KEY_BYTES_MAX: usize = 1024;

/// The most bytes all attributes of one object may take, names and values together.
pub const ATTRIBUTE_BYTES_MAX: usize = 16 * 1024;

/// The highest number of a part of an upload (as in S3). The lowest is 1.
pub const PART_NUMBER_MAX: u16 = 10_000;

/// The MD5 of an object's bytes; for one uploaded in parts, the MD5 of the parts' MD5s and how
/// many parts there were. It prints as S3 does: `9e10…` or `9e10…-3`, without quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Etag {
    /// The hash.
    pub md5: [u8; 16],
    /// 0 for an object stored in one piece.
    pub parts: u16,
}

impl fmt::Display for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.md5 {
            write!(f, "{byte:02x}")?;
        }
        if self.parts > 0 { write!(f, "-{}", self.parts) } else { Ok(()) }
    }
}

impl FromStr for Etag {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WHY: &str = "an ETag is 32 hexadecimal digits, then perhaps \"-\" and a number";
        let (hex, parts) = match text.split_once('-') {
            Some((hex, parts)) => (hex, parts.parse().map_err(|_not_a_number| WHY)?),
            None => (text, 0),
        };
        if hex.len() != 32 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(WHY);
        }
        let md5 = u128::from_str_radix(hex, 16).map_err(|_not_hex| WHY)?.to_be_bytes();
        Ok(Self { md5, parts })
    }
}

/// The place of an object in the log. No two states of an object have the same place, also not
/// after volumes were removed: see [`crate::Store::place`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place(pub(crate) haul_append_log::Lsn);

/// What is known of an object without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Its key.
    pub key: String,
    /// Its length.
    pub bytes: u64,
    /// When it was stored, to the millisecond.
    pub modified: SystemTime,
    /// The hash of its content.
    pub etag: Etag,
}

/// Names and values kept with an object, such as its content type. Their meaning is the
/// caller's; names are unique, and sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attributes(std::collections::BTreeMap<String, String>);

impl Attributes {
    /// No attributes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The value of `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Sets `name` to `value`, whatever it was.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    /// Removes `name`, and returns its value.
    pub fn remove(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    /// All names and values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The bytes of all names and values together.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.iter().map(|(name, value)| name.len() + value.len()).sum()
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Attributes {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

/// What must hold of the object now under a key for a write to go through. It is tested and the
/// write carried out as one step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Precondition {
    /// Nothing.
    #[default]
    None,
    /// There is no object (S3's `If-None-Match: *`).
    Absent,
    /// There is an object, whichever (S3's `If-Match: *`).
    Present,
    /// There is an object with this ETag (S3's `If-Match`).
    Matches(Etag),
}

/// A bucket, and exactly what is in it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketInfo {
    /// Its name.
    pub name: String,
    /// When it was created.
    pub created: SystemTime,
    /// How many objects are in it.
    pub objects: u64,
    /// Their bytes together.
    pub bytes: u64,
}

/// Which part of a bucket to list.
#[derive(Debug, Clone, Default)]
pub struct ListRequest<'a> {
    /// Only keys that begin with this.
    pub prefix: &'a str,
    /// Keys that go on past this after the prefix are folded into one [`Listed::Prefix`].
    pub delimiter: Option<&'a str>,
    /// Only keys and folded prefixes after this one.
    pub after: Option<&'a str>,
    /// At most this many objects and prefixes.
    pub limit: usize,
}

/// One line of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listed {
    /// An object.
    Object(ObjectInfo),
    /// All keys that begin with this, which ends with the delimiter.
    Prefix(String),
}

impl Listed {
    /// The key or the prefix: what the lines are sorted by.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Object(info) => &info.key,
            Self::Prefix(prefix) => prefix,
        }
    }
}

/// One page of a listing, in the order of the keys' bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListPage {
    /// The lines.
    pub lines: Vec<Listed>,
    /// Whether there is more: ask again with `after` set to the last line's name.
    pub more: bool,
}

/// An upload in parts that was started and neither completed nor aborted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadInfo {
    /// Its identifier: 32 hexadecimal digits.
    pub id: String,
    /// The key it will be stored under.
    pub key: String,
    /// When it was started.
    pub started: SystemTime,
    /// The attributes the object will have.
    pub attributes: Attributes,
}

/// One part of an upload that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartInfo {
    /// Its number, from 1 to [`PART_NUMBER_MAX`].
    pub number: u16,
    /// Its length.
    pub bytes: u64,
    /// When it was stored.
    pub modified: SystemTime,
    /// The MD5 of its bytes.
    pub etag: Etag,
    /// Attributes given with it, such as checksums.
    pub attributes: Attributes,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_reads_back_as_it_prints() {
        for text in ["d41d8cd98f00b204e9800998ecf8427e", "00000000000000000000000000000001-10000"] {
            assert_eq!(text.parse::<Etag>().unwrap().to_string(), text);
        }
        for text in
            ["", "d41d8cd98f00b204e9800998ecf8427", "*", "+1d8cd98f00b204e9800998ecf8427e2-1"]
        {
            assert!(text.parse::<Etag>().is_err(), "{text}");
        }
    }
}
