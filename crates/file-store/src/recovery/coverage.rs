//! The part of a volume that its index describes.

use crate::volume_index::format::VolumeIndex;
use crate::volume_index::ranges::Ranges;

/// What an index says of a volume that is not known by it alone.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    /// The ranges whose needles the index has.
    pub(crate) covered: Ranges,
    /// Where its needles end for certain.
    pub(crate) end: Option<u32>,
    /// Needles in the index.
    pub(crate) needles: u64,
    /// How much of the file of the index can be kept.
    pub(crate) kept_bytes: u64,
}

impl Coverage {
    pub(super) fn of(index: &VolumeIndex) -> Self {
        let VolumeIndex { count, covered, end, kept_bytes, .. } = index;
        let covered = covered.clone();
        Self { covered, end: *end, needles: *count, kept_bytes: *kept_bytes }
    }
}
