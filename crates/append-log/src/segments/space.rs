//! Computes a log's free space, and decides which records may use it.

use std::sync::atomic::Ordering;

use crate::error::Result;
use crate::names;
use crate::segments::Segment;
use crate::segments::pool::Pool;
use crate::segments::reserve::{SpacePriority, creatable_bytes, left_min, reserved_count};

/// The space that is available for further segments, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PoolSpace {
    /// The number of reserved segments, and the number that should exist.
    pub(crate) reserved: (usize, u32),
    /// The total bytes in spare files that are not reserved.
    pub(crate) spare_bytes: u64,
    /// The length of a whole segment, in bytes.
    pub(crate) whole_bytes: u32,
    /// The length of the file being created, in bytes; 0 if there is none.
    pub(crate) creating_bytes: u64,
    /// The file system's free bytes that new files for ordinary records may use; `None` if the disk
    /// reports no limit.
    pub(crate) creatable_bytes: Option<u64>,
}

impl Pool {
    /// Updates the number of segments to reserve, given the number of sealed segments (those no
    /// longer being written) and the total length of all segments.
    pub(crate) fn fit_reserve(&self, sealed: usize, segments_bytes: u64) -> Result<()> {
        let whole = self.lengths.whole();
        let spares = self.spares() as u64 * u64::from(whole);
        let free = self.disk.free_bytes()?;
        let capacity = free.map(|free| free.saturating_add(segments_bytes).saturating_add(spares));
        let max = self.options.compaction_segments;
        let reserved = reserved_count(max, sealed, capacity, whole);
        // The number never decreases while the log is open, because compaction relies on the
        // reserved segments.
        self.reserved.fetch_max(reserved, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn space(&self) -> Result<PoolSpace> {
        let reserved = self.reserved.load(Ordering::Relaxed);
        let spares = self.spares();
        let whole = self.lengths.whole();
        let beyond = spares.saturating_sub(reserved as usize) as u64;
        Ok(PoolSpace {
            reserved: (spares.min(reserved as usize), reserved),
            spare_bytes: beyond * u64::from(whole),
            whole_bytes: whole,
            creating_bytes: self.creating_bytes.load(Ordering::Relaxed),
            creatable_bytes: self.creatable_bytes(SpacePriority::Ordinary, whole)?,
        })
    }

    /// Returns the file system's free bytes that a new file of `bytes` bytes for records with this
    /// [`SpacePriority`] may use. A segment for ordinary records that is longer than all before it
    /// leaves space for a reserve with its length.
    pub(super) fn creatable_bytes(
        &self,
        priority: SpacePriority,
        bytes: u32,
    ) -> Result<Option<u64>> {
        let whole = self.lengths.whole();
        let unit = if priority == SpacePriority::Ordinary { bytes.max(whole) } else { whole };
        let has = (self.reserved.load(Ordering::Relaxed), self.spares.lock().whole(unit));
        let free_bytes_min = self.options.free_bytes_min;
        let creatable = |free| creatable_bytes(priority, free, has, unit, free_bytes_min);
        Ok(self.disk.free_bytes()?.map(creatable))
    }

    /// Returns `true` if records with this [`SpacePriority`] may be appended to this segment. A
    /// reserve segment accepts ordinary records only while the reserve of whole segments is
    /// complete.
    pub(crate) fn may_use(&self, segment: &Segment, priority: SpacePriority) -> bool {
        if !segment.is_reserve || priority == SpacePriority::Compaction {
            return true;
        }
        let reserved = self.reserved.load(Ordering::Relaxed);
        if priority == SpacePriority::Reserve && segment.bytes < self.lengths.whole() {
            return true;
        }
        (priority == SpacePriority::Reserve || reserved > 0)
            && self.spares() >= left_min(priority, reserved)
    }

    /// Removes the spare files that are not reserved, and returns the bytes freed.
    pub(crate) fn release_spares(&self) -> Result<u64> {
        let mut released = 0;
        while let Some(spare) = self.take_spare(SpacePriority::Ordinary, 0) {
            self.disk.remove(&names::spare(spare.number))?;
            released += u64::from(spare.bytes);
        }
        Ok(released)
    }
}
