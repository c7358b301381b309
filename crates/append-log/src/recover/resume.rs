//! Determines the position at which a recovered log continues.

use std::sync::Arc;

use haul_disk::{Disk, Durability, write_full};

use crate::append::seal::seal;
use crate::error::{Error, Result};
use crate::format::HEADER_BYTES;
use crate::lsn::Lsn;
use crate::read::scan::Scan;
use crate::segments::new_file::Preparation;
use crate::segments::pool::Pool;
use crate::segments::reserve::SpacePriority;
use crate::segments::{Segment, Segments};

/// The number of zeros written with one request.
const ZEROS_BYTES: usize = 1 << 20;

/// The sources of the segment in which the log continues: the unused segments, then the pool.
pub(super) struct Resume<'a> {
    pub(super) disk: &'a dyn Disk,
    pub(super) pool: &'a Pool,
    pub(super) unused: Segments,
    /// `true` if a copy of the log shares the open segment's file, which must not be written.
    pub(super) is_shared: bool,
}

impl Resume<'_> {
    /// Returns the segment and the offset at which the next record is appended. If the last segment
    /// is `open`, overwrites its torn tail and returns its end. If no segment is open or
    /// `needs_new_segment` is set, begins another segment.
    pub(super) fn resume(
        &mut self,
        open: Option<(Arc<Segment>, Scan)>,
        needs_new_segment: bool,
    ) -> Result<(Arc<Segment>, u32)> {
        let Some((segment, scan)) = open else { return self.begin_segment(Lsn(0)) };
        if needs_new_segment {
            let follows = Lsn::new(segment.number, scan.end);
            match self.begin_segment(follows) {
                Ok(begun) => {
                    segment.end_at(scan.end);
                    if !self.is_shared {
                        drop(seal(self.disk, &segment, scan.end));
                    }
                    return Ok(begun);
                }
                // If the disk has no space for another segment, the log continues in the last one.
                Err(Error::Full { .. }) if !self.is_shared => {}
                Err(error) => return Err(error),
            }
        }
        debug_assert!((HEADER_BYTES..=segment.limit).contains(&scan.end));
        truncate_torn_tail(&segment, &scan)?;
        Ok((segment, scan.end))
    }

    /// Begins another segment: a prepared one, a new one or, on a full disk, one from the reserve.
    fn begin_segment(&mut self, follows: Lsn) -> Result<(Arc<Segment>, u32)> {
        let segment = match self.unused.pop_first() {
            Some((_, ready)) => {
                let follows = if follows == Lsn(0) { ready.follows } else { follows };
                self.pool.renew_recycled(&ready, follows)?
            }
            None => match self.pool.allocate(0, Preparation::Zeroed, follows, &mut |_| true) {
                Ok(made) => made.expect("the pace never cancels"),
                Err(full @ Error::Full { .. }) => self
                    .pool
                    .allocate_from_reserve(SpacePriority::Compaction, 0, follows)?
                    .ok_or(full)?,
                Err(error) => return Err(error),
            },
        };
        Ok((Arc::new(segment), HEADER_BYTES))
    }
}

/// Overwrites the torn tail (what an interrupted write left) with zeros and syncs the segment.
fn truncate_torn_tail(segment: &Segment, found: &Scan) -> Result<()> {
    debug_assert!(found.end + found.torn_bytes <= segment.limit);
    if found.torn_bytes > 0 {
        // The zeros extend to the end of the page: the page cache may hold bytes of a batch whose
        // sync failed, which must not be written back together with the zeros.
        let to = (found.end + found.torn_bytes).next_multiple_of(HEADER_BYTES);
        let zeros = vec![0; ZEROS_BYTES.min((to - found.end) as usize)];
        for at in (found.end..to).step_by(ZEROS_BYTES) {
            let bytes = zeros.len().min((to - at) as usize);
            write_full(&*segment.file, &zeros[..bytes], u64::from(at))?;
        }
        segment.file.sync(Durability::Data)?;
    }
    Ok(())
}
