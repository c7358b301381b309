//! Between the log and the file: nothing is written there that the log does not have, and the log
//! forgets nothing that is not synced there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use haul_append_log::{Log, Lsn, Room};
use haul_disk::File;

use crate::error::Result;
use crate::page_file::format::{Owner, Record};
use crate::state::Gate;

/// What the sweeps of a page file ask before and tell after.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    pub(crate) log: Arc<Log>,
    pub(crate) target: Arc<dyn File>,
    pub(crate) name: String,
    through: AtomicU64,
}

impl Checkpoints {
    pub(crate) fn new(log: Arc<Log>, target: Arc<dyn File>, name: &str, through: Lsn) -> Self {
        // Distances are measured from here: not from 0, for the first segment is not number 0.
        let first = log.segments().first().map_or(Lsn(0), |first| Lsn::new(first.number, 0));
        let through = through.max(first);
        Self { log, target, name: name.to_owned(), through: AtomicU64::new(through.0) }
    }

    /// The last record that is in the file, and all before it.
    pub(crate) fn through(&self) -> Lsn {
        Lsn(self.through.load(Ordering::Acquire))
    }

    /// Appends a mark, and waits for it.
    pub(crate) fn mark(&self, through: Lsn) -> Result<()> {
        let (file_bytes, name) = (self.target.bytes()?, &self.name);
        let owner = Owner::PageFile;
        let mark = Record::Mark { owner, through: through.0, file_bytes, name }.encode();
        self.log.append(&[&mark], Room::Reserve)?.wait()?;
        self.through.fetch_max(through.0, Ordering::AcqRel);
        Ok(())
    }
}

/// A checkpoint is a round of the writer:
///
/// 1. What is in memory is set aside; writers go on in other memory and behind it in the log.
/// 2. [`Gate::before`]: the log is synced up to the last record of the round. After a stop up to
///    here the file is as the checkpoint before left it, and the log has all the rest.
/// 3. The file is written, upward, and synced. After a stop here any part of the round is in the
///    file, torn or whole; the log has all of it, and recovery writes it again.
/// 4. [`Gate::after`]: a mark says that the round is in the file, and is synced. After a stop
///    before the mark is on the medium the round is written again, to no effect.
/// 5. Segments of the log that hold nothing else are removed. After a stop here some of them may
///    still be there; the mark says that nothing in them counts.
impl Gate for Checkpoints {
    fn before(&self, last: u64) -> Result<()> {
        if self.log.synced() <= Lsn(last) {
            self.log.sync()?;
        }
        Ok(())
    }

    fn after(&self, last: u64) -> Result<()> {
        if Lsn(last) <= self.through() {
            return Ok(());
        }
        match self.mark(Lsn(last)) {
            // Not even the reserve has room. The log keeps what it has, and the next checkpoint
            // tries again.
            Err(error) if error.is_full() && !self.log.is_latched() => return Ok(()),
            marked => marked?,
        }
        self.log.truncate_front(Lsn(last))?;
        Ok(())
    }
}
