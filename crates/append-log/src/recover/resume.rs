//! Where a log goes on that was opened.

use std::sync::Arc;

use haul_disk::{Disk, Durability, write_full};

use crate::error::{Error, Result};
use crate::format::HEADER_BYTES;
use crate::lsn::Lsn;
use crate::read::scan::Scan;
use crate::recover::Segments;
use crate::segments::Segment;
use crate::segments::pool::Pool;
use crate::segments::seal::seal;

/// Where the log goes on.
pub(super) struct Resume<'a> {
    pub(super) disk: &'a dyn Disk,
    pub(super) pool: &'a Pool,
    pub(super) not_begun: Segments,
}

impl Resume<'_> {
    pub(super) fn resume(
        &mut self,
        open: Option<(Arc<Segment>, Scan)>,
        is_latched: bool,
    ) -> Result<(Arc<Segment>, u32)> {
        let Some((segment, scan)) = open else { return self.begin(Lsn(0)) };
        if is_latched {
            let follows = Lsn::new(segment.number, scan.end);
            match self.begin(follows) {
                Ok(begun) => {
                    segment.end_at(scan.end);
                    drop(seal(self.disk, &segment, scan.end));
                    return Ok(begun);
                }
                // Better to go on where it failed than not at all.
                Err(Error::Full { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        cut(&segment, &scan)?;
        Ok((segment, scan.end))
    }

    /// The first record of a segment: one that is ready, or a new one, or the reserve.
    fn begin(&mut self, follows: Lsn) -> Result<(Arc<Segment>, u32)> {
        let segment = match self.not_begun.pop_first() {
            Some((_, ready)) => {
                let follows = if follows == Lsn(0) { ready.follows } else { follows };
                self.pool.renew_found(&ready, follows)?
            }
            None => match self.pool.make(follows, &mut |_| true) {
                Ok(made) => made.expect("nobody ended it"),
                Err(full @ Error::Full { .. }) => {
                    self.pool.make_of_reserve(follows)?.ok_or(full)?
                }
                Err(error) => return Err(error),
            },
        };
        Ok((Arc::new(segment), HEADER_BYTES))
    }
}

/// Overwrites the torn tail with zeros.
fn cut(segment: &Segment, found: &Scan) -> Result<()> {
    if found.torn_bytes > 0 {
        // To the end of the page: what memory may still have there, of a batch whose sync
        // failed, must not come to the medium along with the zeros.
        let to = (found.end + found.torn_bytes).next_multiple_of(HEADER_BYTES);
        let zeros = vec![0; (to - found.end) as usize];
        write_full(&*segment.file, &zeros, u64::from(found.end))?;
        segment.file.sync(Durability::Data)?;
    }
    Ok(())
}
