//! Reports a log's free space, and removes spare files to free space.

use super::Log;
use crate::append::state::Next;
use crate::error::Result;
use crate::segments::reserve::SpacePriority;

/// A log's free space.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Space {
    /// The free bytes in the segment being written; 0 if [`crate::SpacePriority::Ordinary`] records
    /// may not use them.
    pub tail_bytes: u64,
    /// The free bytes in the segment being written for [`crate::SpacePriority::Compaction`]
    /// records.
    pub compaction_tail_bytes: u64,
    /// The next segment's length in bytes, if it is ready or being created; otherwise 0.
    pub next_bytes: u64,
    /// The total bytes in spare files that are not reserved. A spare file is a removed segment's
    /// file, kept for reuse, or a file created in advance.
    pub spare_bytes: u64,
    /// The file system's free bytes that new segments for ordinary records may use; `None` if the
    /// disk reports no limit.
    pub creatable_bytes: Option<u64>,
    /// The number of full-length segments that are currently reserved for deletions and compaction.
    pub reserved_segments: usize,
    /// The number of segments that should be reserved. It is greater than `reserved_segments` if
    /// reserved segments are in use or the disk has no space for them.
    pub reserved_segments_wanted: usize,
    /// The length in bytes of each reserved segment, which is the longest segment's length. If
    /// segments are reserved, each new segment for ordinary records has at least this length.
    pub reserved_segment_bytes: u64,
}

impl Log {
    /// Returns the number of spare files with full length, including those reserved for compaction.
    #[must_use]
    pub fn spare_segments(&self) -> usize {
        self.pool.spares()
    }

    /// Returns the log's free space.
    ///
    /// # Errors
    /// Returns [`crate::Error::Disk`] if the file system's free space cannot be determined.
    pub fn space(&self) -> Result<Space> {
        let pool = self.pool.space()?;
        let state = self.shared.state.lock();
        let tail = &state.filling.tail.segment;
        let is_usable = self.pool.may_use(tail, SpacePriority::Ordinary);
        let tail_bytes = tail.records_end().saturating_sub(state.filling.offset());
        let next_bytes = match &state.next {
            Next::Ready(next) if !next.segment.is_reserve => next.segment.bytes,
            _ => 0,
        };
        drop(state);
        Ok(Space {
            tail_bytes: if is_usable { tail_bytes.into() } else { 0 },
            compaction_tail_bytes: tail_bytes.into(),
            next_bytes: pool.creating_bytes.max(next_bytes.into()),
            spare_bytes: pool.spare_bytes,
            creatable_bytes: pool.creatable_bytes,
            reserved_segments: pool.reserved.0,
            reserved_segments_wanted: pool.reserved.1 as usize,
            reserved_segment_bytes: pool.whole_bytes.into(),
        })
    }

    /// Removes the spare files (files kept for new segments) that are not reserved for compaction,
    /// and returns the bytes freed.
    ///
    /// # Errors
    /// Returns [`crate::Error::Disk`] if a file cannot be removed.
    pub fn release_spares(&self) -> Result<u64> {
        self.pool.release_spares()
    }
}
