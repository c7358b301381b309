//! Checks a page file's or patch's log, and replays its writes since the last checkpoint.

use std::sync::Arc;

use haul_append_log::{Log, Lsn, Position};
use haul_disk::Disk;

use crate::error::{Error, Result};
use crate::page_file::format::{LogKind, Record, decode};

#[derive(Debug, Default)]
pub(crate) struct LogSummary {
    /// The last checkpoint record.
    pub(crate) checkpoint: Option<Checkpoint>,
    pub(crate) records: u64,
    /// The number of writes that a patch's commit record declares; `None` if there is no commit
    /// record.
    pub(crate) committed: Option<u64>,
    /// `true` if any record has an unknown kind or version.
    pub(crate) has_unknown_records: bool,
}

#[derive(Debug)]
pub(crate) struct Checkpoint {
    log_kind: LogKind,
    pub(crate) through: Lsn,
    file_bytes: u64,
    name: String,
}

impl LogSummary {
    fn add(&mut self, payload: &[u8]) {
        self.records += 1;
        match decode(payload) {
            Some(Record::Checkpoint { log_kind, through, file_bytes, name }) => {
                let (through, name) = (Lsn(through), name.to_owned());
                self.checkpoint = Some(Checkpoint { log_kind, through, file_bytes, name });
            }
            Some(Record::Commit { records }) => self.committed = Some(records),
            Some(Record::Write { .. }) => {}
            None => self.has_unknown_records = true,
        }
    }

    /// Checks that the log belongs to the file `name` with `file_bytes` bytes. A log without
    /// records is new and passes the check.
    pub(crate) fn check(
        &self,
        dir: &dyn Disk,
        log_kind: LogKind,
        name: &str,
        file_bytes: u64,
    ) -> Result<()> {
        let foreign =
            |what: String| Err(Error::LogMismatch { dir: dir.root().to_path_buf(), what });
        if self.has_unknown_records {
            return foreign(
                "it contains records that are not of version 1, the only one supported".to_owned(),
            );
        }
        let Some(checkpoint) = &self.checkpoint else {
            return match self.records {
                0 => Ok(()),
                _ => foreign("it has no checkpoint record that names its file".to_owned()),
            };
        };
        if checkpoint.log_kind != log_kind {
            let other = match checkpoint.log_kind {
                LogKind::PageFile => "a page file",
                LogKind::Patch => "a patch",
            };
            return foreign(format!("it is the log of {other}"));
        }
        if checkpoint.name != name {
            return foreign(format!("it belongs to the file {}", checkpoint.name));
        }
        if checkpoint.file_bytes > file_bytes {
            let (expected, actual) = (checkpoint.file_bytes, file_bytes);
            return foreign(format!(
                "its file had at least {expected} bytes, this one has {actual}"
            ));
        }
        Ok(())
    }
}

/// Opens a log and returns it with a summary of its records.
pub(crate) fn open(
    disk: &Arc<dyn Disk>,
    options: haul_append_log::Options,
) -> Result<(Log, LogSummary)> {
    let mut summary = LogSummary::default();
    let mut visit = |_: Position, payload: &[u8]| summary.add(payload);
    let (log, _recovered) = Log::open(Arc::clone(disk), options, &mut visit)?;
    Ok((log, summary))
}

/// A callback that receives a write's LSN, file offset and bytes.
pub(crate) type WriteVisitor<'a> = dyn FnMut(Lsn, u64, &[u8]) -> Result<()> + 'a;

/// Calls `visit` for each logged write after the LSN `through`, in order. Returns the number of
/// writes.
pub(crate) fn for_each_write(log: &Log, through: Lsn, visit: &mut WriteVisitor<'_>) -> Result<u64> {
    let mut reader = log.reader(through);
    let mut writes = 0;
    while let Some((at, payload)) = reader.read_next()? {
        if at.lsn > through
            && let Some(Record::Write { offset, bytes }) = decode(payload)
        {
            visit(at.lsn, offset, bytes)?;
            writes += 1;
        }
    }
    Ok(writes)
}
