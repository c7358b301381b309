//! Uploads in the index, sorted as listings need them. Pure.

pub(crate) mod list;

use std::collections::BTreeMap;

use haul_append_log::Position;

use crate::clock::Version;
use crate::format::Head;
use crate::index::entry::{Entry, full_key, split_key};

/// The unfinished uploads of all buckets.
pub(crate) type Uploads = BTreeMap<UploadName, Upload>;

/// The bucket, the key and the ID of an upload. Names sort in this order, so that the uploads of a
/// bucket, and those to keys with a prefix, are a range.
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
    /// The position of its needle; `None` if that was lost to damage.
    pub(crate) at: Option<Position>,
    pub(crate) parts: BTreeMap<u16, Entry>,
}

impl UploadName {
    pub(crate) fn new(bucket: &str, key: &str, id: u128) -> Self {
        Self { full_key: full_key(bucket, key).into(), id }
    }

    /// Returns the name of the upload that a needle starts, extends or ends.
    pub(crate) fn of(head: &Head) -> Self {
        Self::new(&head.bucket, &head.key, head.upload)
    }

    /// Returns the bucket and the key.
    pub(crate) fn bucket_and_key(&self) -> (&str, &str) {
        split_key(&self.full_key).unwrap_or_default()
    }

    pub(crate) fn key(&self) -> &str {
        self.bucket_and_key().1
    }
}

/// Returns the uploads of a bucket, in order. Costs a search and these uploads.
pub(crate) fn in_bucket<'a>(
    uploads: &'a Uploads,
    bucket: &str,
) -> impl Iterator<Item = (&'a UploadName, &'a Upload)> {
    let start = full_key(bucket, "");
    let first = UploadName { full_key: start.as_slice().into(), id: 0 };
    uploads.range(first..).take_while(move |(name, _)| name.full_key.starts_with(&start))
}

/// Returns the ID of an upload that starts with the needle of this version. IDs begin with the time,
/// because S3 lists the uploads to a key in the order of their starts, and after an ID.
pub(crate) fn new_id(started: Version, random: u64) -> u128 {
    u128::from(started.0) << u64::BITS | u128::from(random)
}

/// Returns an ID as callers see it. The order of the texts is that of the numbers.
pub(crate) fn print(id: u128) -> String {
    format!("{id:032x}")
}

/// Parses an ID; `None` if the text is not that of an ID.
pub(crate) fn parse(text: &str) -> Option<u128> {
    u128::from_str_radix(text, 16).ok().filter(|id| print(*id) == text)
}
