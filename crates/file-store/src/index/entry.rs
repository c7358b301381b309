//! An object's index entry, and its encoding in the runs. Pure.

use std::sync::Arc;

use haul_append_log::{Lsn, Position};

use crate::clock::{COUNTER_BITS, Version};
use crate::event::EventFields;
use crate::format::{FilePart, Head, Kind};
use crate::index::quotas::Reserved;
use crate::object::{Attributes, Etag, ObjectInfo, VersionId};
use crate::varint::{put_varint, take_varint};

/// The greatest time that an encoded entry without a version ID can have, in milliseconds. A
/// greater number is the complement of an exact version, because no version is close to its type's
/// maximum.
const MILLIS_MAX: u64 = u64::MAX >> COUNTER_BITS;

/// An object's entry, without its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Exact if it comes from the needle, and if the object has a version ID; otherwise rounded to
    /// milliseconds.
    pub(crate) version: Version,
    pub(crate) at: Position,
    pub(crate) bytes: u64,
    pub(crate) etag: Etag,
    /// `true` if the object has a version ID. Its version is then always exact.
    pub(crate) is_versioned: bool,
    /// Empty for an object whose bytes are in its needle.
    pub(crate) files: Box<[FilePart]>,
}

/// The properties of a replaced or deleted object that the counters need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Replaced {
    pub(crate) at: Position,
    pub(crate) bytes: u64,
    pub(crate) files: Box<[FilePart]>,
}

/// The known predecessor of a needle: the object that it replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Predecessor {
    /// Unknown: the index must be searched.
    Unknown,
    /// The key had no object, or the needle stores no object.
    None,
    Object(Replaced),
}

/// A durable needle and its predecessor.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) head: Head,
    pub(crate) replaces: Option<Replaced>,
    /// The quota reservation of the needle's writer, until the needle is applied.
    pub(crate) reserved: Reserved,
    /// The fields of a queued event, which are the data of its needle.
    pub(crate) event: Option<Arc<EventFields>>,
}

impl Change {
    /// Returns the needle of a change that follows another one in a record: a needle without
    /// attributes, and without data unless it is an event.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut needle = self.head.encode(&Attributes::new());
        if let Some(fields) = &self.event {
            needle.extend_from_slice(fields.as_bytes());
        }
        needle
    }
}

/// A durable record's needles.
#[derive(Debug)]
pub(crate) struct DurableRecord {
    pub(crate) at: Position,
    pub(crate) change: Change,
    /// The needles after the first one.
    pub(crate) others: Vec<Change>,
}

impl From<Head> for Change {
    /// Returns the change that a needle makes if it stores nothing that counts against a quota.
    fn from(head: Head) -> Self {
        debug_assert!(!matches!(head.kind, Kind::Object | Kind::Part), "{head:?} reserves");
        Self { head, replaces: None, reserved: Reserved::nothing(), event: None }
    }
}

impl Clone for Change {
    /// Returns a copy without the reservation, because a reservation ends once.
    fn clone(&self) -> Self {
        let (head, replaces) = (self.head.clone(), self.replaces.clone());
        Self { head, replaces, reserved: Reserved::nothing(), event: self.event.clone() }
    }
}

impl From<Entry> for Replaced {
    fn from(entry: Entry) -> Self {
        Self { at: entry.at, bytes: entry.bytes, files: entry.files }
    }
}

impl From<Option<Replaced>> for Predecessor {
    fn from(replaced: Option<Replaced>) -> Self {
        replaced.map_or(Self::None, Self::Object)
    }
}

impl Entry {
    pub(crate) fn info(&self, key: &str) -> ObjectInfo {
        ObjectInfo {
            key: key.to_owned(),
            bytes: self.bytes,
            modified: self.version.time(),
            etag: self.etag,
            version_id: self.version_id(),
        }
    }

    pub(crate) fn version_id(&self) -> VersionId {
        VersionId::of(self.is_versioned, self.version.0)
    }

    /// Returns `true` for a delete marker: no object has an MD5 of zeros.
    pub(crate) fn is_delete_marker(&self) -> bool {
        self.bytes == 0 && self.etag.md5 == [0; 16]
    }

    /// Returns an object's entry from its needle's head.
    pub(crate) fn of(head: &Head, at: Position) -> Self {
        let Head { version, bytes, etag, is_versioned, .. } = *head;
        let files = head.files.clone().into_boxed_slice();
        Self { version, at, bytes, etag, is_versioned, files }
    }

    /// Encodes the entry as its key's value in a run.
    pub(crate) fn encode(&self) -> Box<[u8]> {
        let mut out = Vec::with_capacity(40);
        put_varint(
            &mut out,
            match self.is_versioned {
                true => !self.version.0,
                false => self.version.millis(),
            },
        );
        put_varint(&mut out, self.at.lsn.segment().into());
        put_varint(&mut out, u64::from(self.at.lsn.offset()) / 8);
        put_varint(&mut out, u64::from(self.at.payload_bytes).wrapping_sub(self.inline_bytes()));
        put_varint(&mut out, self.bytes);
        out.extend_from_slice(&self.etag.md5);
        if self.etag.parts > 0 || !self.files.is_empty() {
            put_varint(&mut out, self.etag.parts.into());
            for file in &self.files {
                out.extend_from_slice(&file.id.to_le_bytes());
                put_varint(&mut out, file.bytes);
            }
        }
        out.into_boxed_slice()
    }

    fn inline_bytes(&self) -> u64 {
        if self.files.is_empty() { self.bytes } else { 0 }
    }

    /// Decodes a key's value; `None` if the bytes are malformed.
    pub(crate) fn decode(mut bytes: &[u8]) -> Option<Self> {
        let input = &mut bytes;
        let time = take_varint(input)?;
        let is_versioned = time > MILLIS_MAX;
        let version = if is_versioned { Version(!time) } else { Version::from_millis(time) };
        let segment = u32::try_from(take_varint(input)?).ok()?;
        let offset = u32::try_from(take_varint(input)?.checked_mul(8)?).ok()?;
        let head_bytes = take_varint(input)?;
        let length = take_varint(input)?;
        let (md5, rest) = input.split_first_chunk()?;
        *input = rest;
        let parts = if input.is_empty() { 0 } else { u16::try_from(take_varint(input)?).ok()? };
        let mut files = Vec::new();
        while !input.is_empty() {
            let (id, rest) = input.split_first_chunk()?;
            *input = rest;
            files.push(FilePart { id: u128::from_le_bytes(*id), bytes: take_varint(input)? });
        }
        let inline = if files.is_empty() { length } else { 0 };
        let payload_bytes = u32::try_from(head_bytes.wrapping_add(inline)).ok()?;
        Some(Self {
            version,
            at: Position { lsn: Lsn::new(segment, offset), payload_bytes },
            bytes: length,
            etag: Etag { md5: *md5, parts },
            is_versioned,
            files: files.into_boxed_slice(),
        })
    }
}

/// Returns an object's key in the runs: the bucket, a zero byte and the key. A bucket's objects are
/// in key order.
pub(crate) fn full_key(bucket: &str, key: &str) -> Vec<u8> {
    let mut name = Vec::with_capacity(bucket.len() + 1 + key.len());
    name.extend_from_slice(bucket.as_bytes());
    name.push(0);
    name.extend_from_slice(key.as_bytes());
    name
}

/// Splits a run's key into bucket and key; `None` if it is malformed.
pub(crate) fn split_key(name: &[u8]) -> Option<(&str, &str)> {
    let at = name.iter().position(|byte| *byte == 0)?;
    let text = |bytes| std::str::from_utf8(bytes).ok();
    Some((text(&name[..at])?, text(&name[at + 1..])?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn entry_of_a_small_object_takes_few_bytes() {
        let entry = Entry {
            version: Version::from_millis(1_790_000_000_000),
            at: Position { lsn: Lsn::new(800, 1 << 26), payload_bytes: 4096 + 90 },
            bytes: 4096,
            etag: Etag { md5: [7; 16], parts: 0 },
            is_versioned: false,
            files: Box::default(),
        };
        assert_eq!(entry.encode().len(), 31);
        assert_eq!(Entry::decode(&entry.encode()), Some(entry.clone()));
        let version = Version(entry.version.0 + 5);
        let versioned = Entry { version, is_versioned: true, ..entry };
        assert_eq!(versioned.encode().len(), 35);
        assert_eq!(Entry::decode(&versioned.encode()), Some(versioned));
    }

    #[test]
    fn name_splits_into_bucket_and_key() {
        assert_eq!(split_key(&full_key("bucket", "a\0b")), Some(("bucket", "a\0b")));
        assert_eq!(split_key(b"bucket"), None);
        assert_eq!(split_key(b"b\0\xff"), None);
    }

    proptest! {
        #[test]
        fn entry_reads_back_as_written(
            version in 0_u64..1 << 63,
            is_versioned: bool,
            lsn in (any::<u32>(), 0_u32..1 << 29),
            lengths in (0_u32..1 << 20, 0_u32..1 << 20),
            md5: [u8; 16],
            parts: u16,
            files in prop::collection::vec((any::<u128>(), any::<u64>()), 0..4),
        ) {
            let file = |(id, bytes)| FilePart { id, bytes };
            let (head, length) = lengths;
            let inline = if files.is_empty() { length } else { 0 };
            let entry = Entry {
                version: match is_versioned {
                    true => Version(version),
                    false => Version::from_millis(version >> COUNTER_BITS),
                },
                is_versioned,
                at: Position { lsn: Lsn::new(lsn.0, lsn.1 * 8), payload_bytes: head + inline },
                bytes: length.into(),
                etag: Etag { md5, parts },
                files: files.into_iter().map(file).collect(),
            };
            prop_assert_eq!(Entry::decode(&entry.encode()), Some(entry));
        }

        #[test]
        fn no_bytes_make_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            drop(Entry::decode(&bytes));
        }
    }
}
