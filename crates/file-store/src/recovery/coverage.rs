//! The part of a volume that its index describes.

use crate::volume_index::format::VolumeIndex;
use crate::volume_index::ranges::Ranges;

/// A volume index's statements about its volume, without the needles.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    /// The ranges whose needles the index has.
    pub(crate) covered: Ranges,
    /// The volume's end, if it is known for certain.
    pub(crate) end: Option<u32>,
    /// The number of needles in the index.
    pub(crate) needles: u64,
    /// The length of the index file's prefix that can be kept.
    pub(crate) kept_bytes: u64,
}

impl Coverage {
    pub(super) fn of(index: &VolumeIndex) -> Self {
        let VolumeIndex { count, covered, end, kept_bytes, .. } = index;
        let covered = covered.clone();
        Self { covered, end: *end, needles: *count, kept_bytes: *kept_bytes }
    }
}
