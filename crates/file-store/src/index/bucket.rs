//! A bucket in the index. Pure.

use haul_append_log::Position;

use crate::clock::Version;
use crate::object::BucketInfo;

/// A bucket and its totals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Bucket {
    pub(crate) created: Version,
    /// The needle's position; `None` if damage has lost the needle.
    pub(crate) position: Option<Position>,
    pub(crate) objects: u64,
    pub(crate) bytes: u64,
}

impl Bucket {
    pub(crate) fn info(&self, name: &str) -> BucketInfo {
        BucketInfo {
            name: name.to_owned(),
            created: self.created.time(),
            objects: self.objects,
            bytes: self.bytes,
        }
    }
}
