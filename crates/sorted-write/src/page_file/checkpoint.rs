//! Executes a page file's checkpoints under two rules: a write is durable in the log before it is
//! written to the file (write-ahead logging), and the log keeps the write until it is durable in
//! the file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use haul_append_log::{Log, Lsn, SpacePriority};
use haul_disk::File;

use crate::error::Result;
use crate::page_file::format::{LogKind, Record};
use crate::state::RoundHook;

/// A page file's write-ahead log, and the LSN (log sequence number) of its last checkpoint.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    pub(crate) log: Arc<Log>,
    pub(crate) target: Arc<dyn File>,
    pub(crate) name: String,
    through: AtomicU64,
}

impl Checkpoints {
    pub(crate) fn new(log: Arc<Log>, target: Arc<dyn File>, name: &str, through: Lsn) -> Self {
        // The page file computes its log's length as the distance from `through`. An LSN contains a
        // segment number, and the first segment is not number 0, so the distance from LSN 0 would
        // include segments that do not exist.
        let first = log.segments().first().map_or(Lsn(0), |first| Lsn::new(first.number, 0));
        let through = through.max(first);
        Self { log, target, name: name.to_owned(), through: AtomicU64::new(through.0) }
    }

    /// Returns the LSN up to which all logged writes are durable in the file.
    pub(crate) fn through(&self) -> Lsn {
        Lsn(self.through.load(Ordering::Acquire))
    }

    /// Appends a checkpoint record for `through` to the log, and waits until it is durable.
    pub(crate) fn append_record(&self, through: Lsn) -> Result<()> {
        let (file_bytes, name) = (self.target.bytes()?, &self.name);
        let log_kind = LogKind::PageFile;
        debug_assert!(through <= self.log.synced(), "what is in the file is in the log, too");
        let record = Record::Checkpoint { log_kind, through: through.0, file_bytes, name }.encode();
        self.log.append(&[&record], SpacePriority::Reserve)?.wait()?;
        self.through.fetch_max(through.0, Ordering::AcqRel);
        Ok(())
    }
}

/// A checkpoint is a round that the writer executes, with these steps:
///
/// 1. The writer takes the generation that callers have filled for the round. New writes go to the
///    other generation and to the log.
/// 2. [`RoundHook::before`] syncs the log up to the round's last record. After a crash up to here,
///    the file is as the previous checkpoint left it, and the log contains all later writes.
/// 3. The writer writes the file in ascending order and syncs it. After a crash during this step,
///    any part of the round may be in the file, possibly torn; recovery writes all of it again from
///    the log.
/// 4. [`RoundHook::after`] appends a checkpoint record to the log and syncs it. After a crash
///    before the record is durable, recovery writes the round again, which is idempotent.
/// 5. [`RoundHook::after`] removes obsolete log segments. After a crash during this step some may
///    remain; recovery ignores them because of the checkpoint record.
impl RoundHook for Checkpoints {
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
        match self.append_record(Lsn(last)) {
            // Even the reserve, the space that the log keeps free for checkpoint records, is full.
            // The log keeps its segments, and the next checkpoint appends its record.
            Err(error) if error.is_full() && !self.log.is_latched() => return Ok(()),
            result => result?,
        }
        debug_assert!(self.through() >= Lsn(last), "the log is only removed behind a checkpoint");
        self.log.truncate_front(Lsn(last))?;
        Ok(())
    }
}
