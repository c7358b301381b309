//! Uploads in the index, sorted as listings need them. Pure.

pub(crate) mod list;

use std::collections::BTreeMap;

use haul_append_log::Position;

use crate::clock::Version;
use crate::format::Head;
use crate::index::entry::{Entry, full_key, split_key};

/// The unfinished uploads of all buckets.
pub(crate) type Uploads = BTreeMap<UploadName, Upload>;

/// An upload's bucket, key and ID. Names sort in this order, so that a bucket's uploads are a
/// range, and so are the uploads to keys with a prefix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UploadName {
    /// The bucket and the key: one allocation is smaller than two.
    full_key: Box<[u8]>,
    pub(crate) id: u128,
}

/// An upload that is neither completed nor aborted.
#[derive(Debug, Default)]
pub(crate) struct Upload {
    pub(crate) started: Version,
    /// The needle's position; `None` if damage has lost the needle.
    pub(crate) at: Option<Position>,
    pub(crate) parts: BTreeMap<u16, Entry>,
}

impl Upload {
    pub(crate) fn part_bytes(&self) -> u64 {
        self.parts.values().map(|part| part.bytes).sum()
    }
}

impl UploadName {
    pub(crate) fn new(bucket: &str, key: &str, id: u128) -> Self {
        Self { full_key: full_key(bucket, key).into(), id }
    }

    /// Returns the name of the upload that a needle starts, extends or ends.
    pub(crate) fn of(head: &Head) -> Self {
        Self::new(&head.bucket, &head.key, head.upload)
    }

    pub(crate) fn bucket_and_key(&self) -> (&str, &str) {
        split_key(&self.full_key).unwrap_or_default()
    }

    pub(crate) fn key(&self) -> &str {
        self.bucket_and_key().1
    }
}

/// Returns a bucket's uploads, in order. Costs one search, and visits only these uploads.
pub(crate) fn in_bucket<'a>(
    uploads: &'a Uploads,
    bucket: &str,
) -> impl Iterator<Item = (&'a UploadName, &'a Upload)> {
    let start = full_key(bucket, "");
    let first = UploadName { full_key: start.as_slice().into(), id: 0 };
    uploads.range(first..).take_while(move |(name, _)| name.full_key.starts_with(&start))
}

/// Returns a key's uploads, in order. Costs one search, and visits only these uploads.
pub(crate) fn in_key<'a>(
    uploads: &'a Uploads,
    bucket: &str,
    key: &str,
) -> impl Iterator<Item = (&'a UploadName, &'a Upload)> {
    let first = UploadName::new(bucket, key, 0);
    let last = UploadName { id: u128::MAX, ..first.clone() };
    uploads.range(first..=last)
}

/// Returns the first key in a bucket, after `after`, that has uploads.
pub(crate) fn next_key<'a>(uploads: &'a Uploads, bucket: &str, after: &str) -> Option<&'a str> {
    let mut from = full_key(bucket, after);
    from.push(0);
    let (name, _) = uploads.range(UploadName { full_key: from.into(), id: 0 }..).next()?;
    let (of, key) = name.bucket_and_key();
    (of == bucket).then_some(key)
}

/// Returns the ID for an upload that starts with the needle of this version. IDs begin with the
/// time, because S3 lists a key's uploads in the order in which they started, and can start the
/// list after an ID.
pub(crate) fn new_id(started: Version, random: u64) -> u128 {
    u128::from(started.0) << u64::BITS | u128::from(random)
}

/// Formats an ID as callers see it. The texts sort like the numbers.
pub(crate) fn print(id: u128) -> String {
    format!("{id:032x}")
}

/// Parses a formatted ID; `None` if the text is malformed.
pub(crate) fn parse(text: &str) -> Option<u128> {
    u128::from_str_radix(text, 16).ok().filter(|id| print(*id) == text)
}
