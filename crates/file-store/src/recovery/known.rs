//! The needles in a volume that are known without reading it: from the checkpoint, and from the
//! volume's index.

use std::cmp::Ordering;

use haul_append_log::SegmentInfo;

use crate::recovery::replay::Replayer;
use crate::volume_index;
use crate::volume_index::format::VolumeIndex;

impl Replayer<'_> {
    /// Returns `true` if the checkpoint contains all needles of a volume.
    pub(crate) fn is_covered(&self, volume: u32) -> bool {
        volume < self.applied.segment()
    }

    /// Returns the offset before which the checkpoint contains all needles in a volume.
    pub(crate) fn covered_end(&self, volume: u32) -> u32 {
        match volume.cmp(&self.applied.segment()) {
            Ordering::Less => u32::MAX,
            Ordering::Equal => self.applied.offset(),
            Ordering::Greater => 0,
        }
    }

    /// Returns `true` if the volume was sealed and its index has all of its needles. The needles
    /// are counted but not decoded.
    pub(super) fn has_complete_index(&self, segment: SegmentInfo) -> bool {
        let is_its = |index: &&VolumeIndex| is_index_of(index, segment.number, segment.nonce);
        if let Some(index) = self.cached.as_ref().filter(is_its) {
            return index.is_complete;
        }
        let nonce = Some(segment.nonce);
        volume_index::read_after(self.volumes, segment.number, nonce, u32::MAX)
            .is_some_and(|index| index.is_complete)
    }

    /// Returns a volume's index, without the needles in blocks that the checkpoint covers.
    pub(super) fn read_index(&mut self, volume: u32, nonce: Option<u64>) -> Option<VolumeIndex> {
        let is_its =
            |index: &mut VolumeIndex| nonce.is_some_and(|nonce| is_index_of(index, volume, nonce));
        self.cached.take_if(is_its).or_else(|| {
            volume_index::read_after(self.volumes, volume, nonce, self.covered_end(volume))
        })
    }
}

fn is_index_of(index: &VolumeIndex, volume: u32, nonce: u64) -> bool {
    (index.volume, index.nonce) == (volume, nonce)
}
