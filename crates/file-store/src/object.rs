//! Descriptions of objects, buckets and uploads.

use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

use crate::clock::Version;
use crate::event::Event;

/// The maximum length of a key, in bytes of UTF-8 (as in S3).
pub const KEY_BYTES_MAX: usize = 1024;

/// The maximum total length of an object's attributes, names and values together.
pub const ATTRIBUTE_BYTES_MAX: usize = 16 * 1024;

/// The greatest part number of an upload (as in S3). The smallest is 1.
pub const PART_NUMBER_MAX: u16 = 10_000;

/// The MD5 of an object's bytes; for an object uploaded in parts, the MD5 of the parts' MD5s and
/// the number of parts. Its text is as in S3, without quotes: `9e10…` or `9e10…-3`.
///
/// A program can store content in an encoded form, such as an encrypted one: see
/// [`WrittenContent::encoded`](crate::WrittenContent::encoded). The program then sets the hash, and
/// lengths are the encoded form's lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Etag {
    /// The hash.
    pub md5: [u8; 16],
    /// The number of parts; 0 for an object that was not uploaded in parts. [`Self::ENCODED`] is
    /// added if the content is stored in an encoded form.
    pub parts: u16,
}

impl Etag {
    /// The bit in [`Self::parts`] for content that is stored in an encoded form.
    pub const ENCODED: u16 = 1 << 15;

    /// Returns `true` if the content is stored in an encoded form.
    #[must_use]
    pub fn is_encoded(&self) -> bool {
        self.parts & Self::ENCODED != 0
    }

    /// Returns the number of parts; 0 for an object that was not uploaded in parts.
    #[must_use]
    pub fn part_count(&self) -> u16 {
        self.parts & !Self::ENCODED
    }

    /// Returns `true` if both have the same text. A parsed ETag does not state whether the content
    /// is encoded.
    #[must_use]
    pub fn has_text_of(&self, other: &Self) -> bool {
        self.md5 == other.md5 && self.part_count() == other.part_count()
    }
}

impl fmt::Display for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digit = |value: u8| b"0123456789abcdef"[usize::from(value)];
        let mut digits = [0; 32];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.md5) {
            pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
        }
        // Written at once, so that the text into which they are written grows once.
        f.write_str(str::from_utf8(&digits).unwrap_or_default())?;
        match self.part_count() {
            0 => Ok(()),
            parts => write!(f, "-{parts}"),
        }
    }
}

impl FromStr for Etag {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WHY: &str =
            "an ETag consists of 32 hexadecimal digits and optionally \"-\" and a number";
        let (hex, parts) = match text.split_once('-') {
            Some((hex, parts)) => (hex, parts.parse().map_err(|_not_a_number| WHY)?),
            None => (text, 0),
        };
        if hex.len() != 32 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(WHY);
        }
        let md5 = u128::from_str_radix(hex, 16).map_err(|_not_hex| WHY)?.to_be_bytes();
        let etag = Self { md5, parts };
        // No object has so many parts, and the text has no bit for the encoding.
        if etag.is_encoded() { Err(WHY) } else { Ok(etag) }
    }
}

/// An object's location in the log. Two states of an object never have the same location, not even
/// after compaction: see [`crate::Store::location`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ObjectLocation {
    pub(crate) lsn: haul_append_log::Lsn,
    /// A length that suffices for most records of this class.
    pub(crate) bytes_hint: u32,
    /// The number of the store in its pool: locations in different stores are different.
    pub(crate) member: u16,
}

impl ObjectLocation {
    pub(crate) const fn in_member(self, member: u16) -> Self {
        Self { member, ..self }
    }

    /// Returns the number of the store in its pool ([`crate::Options::member`]).
    #[must_use]
    pub const fn member(self) -> u16 {
        self.member
    }
}

/// A stored object, and the location of this state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredObject {
    /// The object's description.
    pub info: ObjectInfo,
    /// The location at which it was stored. A caller that has its content can cache it with this
    /// location; compaction and another put may have changed the location since.
    pub location: ObjectLocation,
}

/// An object's description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectInfo {
    /// The key.
    pub key: String,
    /// The length, in bytes.
    pub bytes: u64,
    /// When the object was stored, with millisecond precision.
    pub modified: SystemTime,
    /// The hash of its content.
    pub etag: Etag,
    /// The version ID.
    pub version_id: VersionId,
}

/// An object version's ID. Its text is `null` or 16 hexadecimal digits; of two IDs that are not
/// `null`, the greater one is newer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum VersionId {
    /// An object that was stored while versioning was off or suspended. A key has at most one.
    #[default]
    Null,
    /// An object or delete marker that was stored while versioning was enabled.
    Id(u64),
}

impl VersionId {
    pub(crate) fn of(is_versioned: bool, version: u64) -> Self {
        if is_versioned { Self::Id(version) } else { Self::Null }
    }
}

impl fmt::Display for VersionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Id(id) => write!(f, "{id:016x}"),
        }
    }
}

impl FromStr for VersionId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "null" {
            return Ok(Self::Null);
        }
        let id = u64::from_str_radix(text, 16).ok().map(Self::Id);
        id.filter(|id| id.to_string() == text)
            .ok_or("a version ID is \"null\" or consists of 16 hexadecimal digits")
    }
}

/// A bucket's versioning state, which decides whether objects are retained when they are replaced
/// or deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Versioning {
    /// Versioning was never enabled: objects are not retained.
    #[default]
    Off,
    /// Every object gets a version ID, and is retained.
    Enabled,
    /// New objects have the ID `null`, and replace the version with this ID. Others are retained.
    Suspended,
}

/// A version of an object, or a delete marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionInfo {
    /// The description; a delete marker has 0 bytes.
    pub info: ObjectInfo,
    /// `true` if no version of the key is newer.
    pub is_latest: bool,
    /// `true` for a delete marker.
    pub is_delete_marker: bool,
}

/// The parameters of a version listing.
#[derive(Debug, Clone, Default)]
pub struct ListVersionsRequest<'a> {
    /// Lists only keys with this prefix.
    pub prefix: &'a str,
    /// Keys that contain the delimiter after the prefix are combined to one
    /// [`VersionListEntry::Prefix`].
    pub delimiter: Option<&'a str>,
    /// Lists only keys and common prefixes after this name.
    pub after: Option<&'a str>,
    /// Also lists the versions of the key in `after` that are older than this one.
    pub after_version: Option<VersionId>,
    /// The maximum number of versions and common prefixes.
    pub limit: usize,
}

/// An entry in a version listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionListEntry {
    /// A version of an object, or a delete marker.
    Version(VersionInfo),
    /// A common prefix: all keys that start with it. It ends with the delimiter.
    Prefix(String),
}

/// A page of a version listing, in the byte order of the keys, and for each key from the newest
/// version to the oldest one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VersionListPage {
    /// The entries.
    pub entries: Vec<VersionListEntry>,
    /// `true` if the listing continues: list again after the last entry.
    pub more: bool,
}

/// The result of a deletion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deleted {
    /// `true` if the object or version existed, or may have existed in a damaged place.
    pub existed: bool,
    /// The ID of the new delete marker, or of the deleted version; `None` in a bucket without
    /// versions.
    pub version_id: Option<VersionId>,
    /// `true` if a delete marker was created or deleted.
    pub is_delete_marker: bool,
}

/// Names and values that are stored with an object, such as its content type. Their meaning is up
/// to the caller. Names are unique and sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attributes(std::collections::BTreeMap<String, String>);

impl Attributes {
    /// Creates an empty set of attributes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the value of `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Sets `name` to `value`, replacing an existing value.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    /// Removes `name` and returns its value.
    pub fn remove(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    /// Returns all names and values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the total length of all names and values.
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

/// A condition on a key's current object. A write whose condition does not hold is rejected. The
/// test and the write are atomic.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Precondition {
    /// No condition.
    #[default]
    None,
    /// The object does not exist (S3's `If-None-Match: *`).
    Absent,
    /// The object exists, with any ETag (S3's `If-Match: *`).
    Present,
    /// The object exists and has this ETag (S3's `If-Match`).
    Matches(Etag),
    /// The object does not exist, or has another ETag than this one (`If-None-Match` with an ETag).
    Differs(Etag),
}

/// A bucket and its current totals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketInfo {
    /// The name.
    pub name: String,
    /// The time at which it was created.
    pub created: SystemTime,
    /// The number of objects.
    pub objects: u64,
    /// The total length of the objects.
    pub bytes: u64,
}

/// The identity of a bucket: one that is deleted and created again with the same name is another
/// bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BucketId(pub(crate) Version);

/// The state in which a bucket is created.
#[derive(Debug, Clone, Default)]
pub struct NewBucket {
    /// The settings.
    pub settings: Attributes,
    /// `true` enables versioning and object lock.
    pub has_object_lock: bool,
    /// The identity of the same bucket in another store of a pool, which the bucket gets, too.
    /// `None` assigns one.
    pub id: Option<BucketId>,
}

impl NewBucket {
    /// Returns the state of a bucket with versioning and object lock.
    #[must_use]
    pub fn with_object_lock(settings: Attributes) -> Self {
        Self { settings, has_object_lock: true, id: None }
    }
}

impl From<Attributes> for NewBucket {
    fn from(settings: Attributes) -> Self {
        Self { settings, ..Self::default() }
    }
}

/// The bucket in which a write stores an object.
#[derive(Debug, Clone, Copy)]
pub struct TargetBucket<'a> {
    pub(crate) name: &'a str,
    pub(crate) id: Option<BucketId>,
    pub(crate) event: Option<&'a Event>,
}

impl<'a> TargetBucket<'a> {
    /// Returns the bucket with this name. With an `id`, the write fails with
    /// [`crate::Error::NoSuchBucket`] if another bucket has the name by then: what was decided about
    /// a write, such as a right, does not hold for that one.
    #[must_use]
    pub const fn new(name: &'a str, id: Option<BucketId>) -> Self {
        Self { name, id, event: None }
    }

    /// Returns the bucket with an event that the write queues.
    #[must_use]
    pub const fn with_event(self, event: Option<&'a Event>) -> Self {
        Self { event, ..self }
    }

    /// Returns the bucket's name.
    #[must_use]
    pub const fn name(&self) -> &'a str {
        self.name
    }
}

impl<'a> From<&'a str> for TargetBucket<'a> {
    fn from(name: &'a str) -> Self {
        Self::new(name, None)
    }
}

impl<'a> From<&'a String> for TargetBucket<'a> {
    fn from(name: &'a String) -> Self {
        Self::new(name, None)
    }
}

/// The limits on the usage of a bucket, or of all buckets of an owner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quota {
    /// The maximum number of bytes; `None` for no limit.
    pub bytes: Option<u64>,
    /// The maximum number of objects; `None` for no limit.
    pub objects: Option<u64>,
}

impl Quota {
    /// Returns `true` if there is a limit.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.bytes.is_some() || self.objects.is_some()
    }
}

/// The usage that counts against a [`Quota`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// The bytes of objects, older versions, and parts of unfinished uploads, as they are stored.
    pub bytes: u64,
    /// The number of objects, older versions and delete markers.
    pub objects: u64,
}

impl Usage {
    /// Returns the sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { bytes: self.bytes + other.bytes, objects: self.objects + other.objects }
    }
}

/// The quota and the usage of a bucket or of an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaState {
    /// The name of the bucket or of the owner.
    pub name: String,
    /// The quota.
    pub quota: Quota,
    /// The usage that counts against the quota.
    pub usage: Usage,
}

/// The parameters of a listing.
#[derive(Debug, Clone, Default)]
pub struct ListRequest<'a> {
    /// Lists only keys with this prefix.
    pub prefix: &'a str,
    /// Keys that contain the delimiter after the prefix are combined to one [`ListEntry::Prefix`].
    pub delimiter: Option<&'a str>,
    /// Lists only keys and common prefixes after this name.
    pub after: Option<&'a str>,
    /// The maximum number of objects and common prefixes.
    pub limit: usize,
}

/// An entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListEntry {
    /// An object.
    Object(ObjectInfo),
    /// A common prefix: all keys that start with it. It ends with the delimiter.
    Prefix(String),
}

impl ListEntry {
    /// Returns the key or the common prefix, by which the entries are sorted.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Object(info) => &info.key,
            Self::Prefix(prefix) => prefix,
        }
    }
}

/// A page of a listing, in the byte order of the keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListPage {
    /// The entries.
    pub entries: Vec<ListEntry>,
    /// `true` if the listing continues: list again with `after` set to the name of the last entry.
    pub more: bool,
}

/// A multipart upload that is neither completed nor aborted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadInfo {
    /// The ID: 32 hexadecimal digits.
    pub id: String,
    /// The upload's key.
    pub key: String,
    /// The time at which it was started.
    pub started: SystemTime,
    /// The attributes of the future object.
    pub attributes: Attributes,
}

/// A stored part of an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartInfo {
    /// The number, from 1 to [`PART_NUMBER_MAX`].
    pub number: u16,
    /// The length, in bytes.
    pub bytes: u64,
    /// The time at which it was stored.
    pub modified: SystemTime,
    /// The MD5 of its bytes.
    pub etag: Etag,
    /// The attributes that were stored with it, such as checksums.
    pub attributes: Attributes,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_id_round_trips_through_its_text() {
        for text in ["null", "0000000000000000", "18f1e2d3c4b5a697"] {
            assert_eq!(text.parse::<VersionId>().unwrap().to_string(), text);
        }
        for text in ["", "NULL", "18F1e2d3c4b5a697", "18f1e2d3c4b5a69", "+8f1e2d3c4b5a697"] {
            assert!(text.parse::<VersionId>().is_err(), "{text}");
        }
    }

    #[test]
    fn etag_round_trips_through_its_text() {
        for text in ["d41d8cd98f00b204e9800998ecf8427e", "00000000000000000000000000000001-10000"] {
            let etag: Etag = text.parse().unwrap();
            assert_eq!(etag.to_string(), text);
            let encoded = Etag { parts: etag.parts | Etag::ENCODED, ..etag };
            assert_eq!(encoded.to_string(), text);
            assert!(encoded != etag && encoded.has_text_of(&etag) && encoded.is_encoded());
            assert_eq!(encoded.part_count(), etag.parts);
        }
        for text in [
            "",
            "d41d8cd98f00b204e9800998ecf8427",
            "*",
            "+1d8cd98f00b204e9800998ecf8427e2-1",
            "d41d8cd98f00b204e9800998ecf8427e-32769",
        ] {
            assert!(text.parse::<Etag>().is_err(), "{text}");
        }
    }
}
