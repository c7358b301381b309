//! Applies many writes to a file atomically.

use std::sync::Arc;

use haul_append_log::{Log, Lsn, SpacePriority, Ticket};
use haul_disk::{Disk, LOCK_NAME, PAGE_BYTES};

use crate::error::{Error, Result};
use crate::options::WRITE_BYTES_MAX;
use crate::page_file::format::{LogKind, Record, encode_write_header};
use crate::page_file::recover::{self, LogSummary};
use crate::writer::{FileId, SortedWriter};

/// The state of a patch's log.
#[derive(Debug)]
pub enum PatchState {
    /// There is no patch: the directory is empty.
    Absent,
    /// The patch was never committed, or is already applied: remove it with [`Patch::remove_log`].
    Obsolete {
        /// `true` if the patch was applied, `false` if it was not committed.
        is_applied: bool,
    },
    /// The patch was committed and may be partly applied: call [`Patch::apply`].
    Committed(Box<Patch>),
}

/// Writes that are collected in a log and then applied to a file atomically.
///
/// 1. [`Patch::begin`] creates the log, and [`Patch::add`] appends the writes to it. After a crash
///    during this step, the file is unchanged, and [`Patch::recover`] returns
///    [`PatchState::Obsolete`].
/// 2. [`Patch::commit`] appends a commit record and syncs the log. After a crash from then on,
///    [`Patch::recover`] returns [`PatchState::Committed`].
/// 3. [`Patch::apply`] sorts the writes, writes them to the file and syncs it. After a crash during
///    this step, any part of the writes is in the file; applying the patch again completes it.
/// 4. [`Patch::apply`] then appends a checkpoint record to the log. After a crash from then on, the
///    file is complete, and [`Patch::recover`] returns [`PatchState::Obsolete`].
/// 5. [`Patch::remove_log`] removes the log.
#[derive(Debug)]
pub struct Patch {
    log: Log,
    name: String,
    file_bytes: u64,
    records: u64,
    /// The tickets of records that the log may still hold in memory. Dropping a ticket makes the
    /// log write its record at once, so tickets are kept until many records can be written as a
    /// batch.
    tickets: Vec<Ticket>,
}

/// The number of kept tickets at which [`Patch::add`] waits until their records are written.
const TICKETS_MAX: usize = 4096;

/// The minimum and maximum length of a log segment in bytes.
const SEGMENT_BYTES: (u64, u64) = (4 << 20, 64 << 20);

fn options(patch_bytes: u64) -> haul_append_log::Options {
    let pages = patch_bytes.clamp(SEGMENT_BYTES.0, SEGMENT_BYTES.1).div_ceil(PAGE_BYTES as u64);
    haul_append_log::Options {
        segment_bytes: u32::try_from(pages).unwrap_or(1) * 4096,
        buffer_bytes: 4 << 20,
        reserve_bytes: 0,
        spare_segments_max: 0,
        ..haul_append_log::Options::default()
    }
}

impl Patch {
    /// Returns the state of the patch whose log is in the root directory of `log`. The patch must
    /// be for the file `name`, which has `file_bytes` bytes.
    ///
    /// # Errors
    /// Returns [`Error::LogMismatch`] if the log does not belong to a patch for this file,
    /// [`Error::Log`] if the log is damaged, and [`Error::InUse`] if the log is open.
    pub fn recover(log: &Arc<dyn Disk>, name: &str, file_bytes: u64) -> Result<PatchState> {
        if log.list("")?.iter().all(|name| name == LOCK_NAME) {
            return Ok(PatchState::Absent);
        }
        let (opened, summary) = recover::open(log, options(0))?;
        let LogSummary { checkpoint, committed, .. } = &summary;
        let is_applied = checkpoint.as_ref().is_some_and(|checkpoint| checkpoint.through > Lsn(0));
        let Some(records) = committed.filter(|_| !is_applied) else {
            // A crash may have interrupted the removal of an uncommitted patch after removing the
            // first segment, which contains the checkpoint record.
            if checkpoint.is_none() && !summary.has_unknown_records {
                return Ok(PatchState::Obsolete { is_applied });
            }
            summary.check(&**log, LogKind::Patch, name, u64::MAX)?;
            return Ok(PatchState::Obsolete { is_applied });
        };
        summary.check(&**log, LogKind::Patch, name, file_bytes)?;
        let name = name.to_owned();
        let tickets = Vec::new();
        let patch = Self { log: opened, name, file_bytes, records, tickets };
        Ok(PatchState::Committed(Box::new(patch)))
    }

    /// Starts a patch in the root directory of `log`, which must be empty. `patch_bytes` is the
    /// patch's expected size, from which the segment length is derived.
    ///
    /// # Errors
    /// Returns [`Error::Log`] if the log cannot be created, such as on a full disk.
    pub fn begin(
        log: &Arc<dyn Disk>,
        name: &str,
        file_bytes: u64,
        patch_bytes: u64,
    ) -> Result<Self> {
        let (opened, _empty) = recover::open(log, options(patch_bytes))?;
        let (name, tickets) = (name.to_owned(), Vec::new());
        let patch = Self { log: opened, name, file_bytes, records: 0, tickets };
        patch.append_checkpoint(Lsn(0))?;
        Ok(patch)
    }

    /// Adds a write to the patch. If writes overlap, the bytes of the last one are kept.
    ///
    /// # Errors
    /// Returns [`Error::Log`] if the log cannot be written, and [`Error::Invalid`] if the write
    /// ends after the largest file offset. The patch must then be discarded.
    ///
    /// # Durability
    /// None until [`Patch::commit`] has returned.
    pub fn add(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        crate::writer::check_range(offset, bytes.len())?;
        let mut at = offset;
        for part in bytes.chunks(WRITE_BYTES_MAX) {
            self.tickets
                .push(self.log.append(&[&encode_write_header(at), part], SpacePriority::Ordinary)?);
            at += part.len() as u64;
            self.records += 1;
        }
        if self.tickets.len() >= TICKETS_MAX
            && let Some(last) = self.tickets.pop()
        {
            last.wait()?;
            self.tickets.clear();
        }
        Ok(())
    }

    /// Appends the commit record and waits until the complete patch is durable in the log.
    ///
    /// # Errors
    /// Returns [`Error::Log`] if the log cannot be written. The commit may be durable or not; call
    /// [`Patch::recover`] to determine this.
    ///
    /// # Durability
    /// When this returns `Ok`, the complete patch survives a power cut.
    pub fn commit(&mut self) -> Result<()> {
        // The log makes records durable in order: if the commit record is durable, so are all
        // records before it.
        let commit = Record::Commit { records: self.records }.encode();
        self.log.append(&[&commit], SpacePriority::Reserve)?.wait()?;
        self.tickets.clear();
        Ok(())
    }

    /// Writes a committed patch to `file` through `writer`, and waits until it is durable. After
    /// each write `progress` is called with the number of writes and bytes submitted so far.
    ///
    /// # Errors
    /// Returns [`Error::Latched`] or [`Error::Disk`] if the file cannot be written, and
    /// [`Error::Log`] if the log cannot be read or the checkpoint record not appended. The log
    /// still contains the patch then.
    ///
    /// # Durability
    /// When this returns `Ok`, the patch is durable in the file.
    pub fn apply(
        &self,
        writer: &SortedWriter,
        file: FileId,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        let (mut records, mut bytes_done) = (0, 0);
        let writes = recover::for_each_write(&self.log, Lsn(0), &mut |_, offset, bytes| {
            writer.write(file, offset, bytes)?;
            records += 1;
            bytes_done += bytes.len() as u64;
            progress(records, bytes_done);
            Ok(())
        })?;
        if writes != self.records {
            return Err(Error::Invalid("the log has fewer or more writes than its commit record"));
        }
        writer.barrier()?;
        self.append_checkpoint(self.log.synced())
    }

    /// Returns the number of writes in the patch. A write longer than [`WRITE_BYTES_MAX`] counts
    /// once for each part into which it was split.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    fn append_checkpoint(&self, through: Lsn) -> Result<()> {
        let (name, file_bytes) = (&self.name, self.file_bytes);
        let log_kind = LogKind::Patch;
        let record = Record::Checkpoint { log_kind, through: through.0, file_bytes, name }.encode();
        self.log.append(&[&record], SpacePriority::Reserve)?.wait()?;
        Ok(())
    }

    /// Removes the log after the patch was applied, or if it was never committed. The log must not
    /// be open. Segments are removed in ascending order, so that the last checkpoint record is
    /// removed last: after an interrupted removal, an applied patch is not applied again.
    ///
    /// # Errors
    /// Returns [`Error::Disk`] if a file cannot be removed.
    ///
    /// # Durability
    /// When this returns `Ok`, the removal survives a power cut.
    pub fn remove_log(log: &dyn Disk) -> Result<()> {
        for name in log.list("")? {
            log.remove(&name)?;
            log.sync_dir("")?;
        }
        Ok(())
    }
}
