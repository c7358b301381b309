//! Many writes to a file as one: all of them, or none.

use std::sync::Arc;

use haul_append_log::{Log, Lsn, Room, Ticket};
use haul_disk::{Disk, PAGE_BYTES};

use crate::error::{Error, Result};
use crate::options::WRITE_BYTES_MAX;
use crate::page_file::format::{Owner, Record, write_header};
use crate::page_file::recover::{self, Found};
use crate::writer::{FileId, SortedWriter};

/// What an earlier run left in the directory of a patch.
#[derive(Debug)]
pub enum Leftover {
    /// Nothing.
    Nothing,
    /// A patch that never became durable, or that is in the file already: [`Patch::forget`] the
    /// rest of it.
    Rest {
        /// Whether it is in the file.
        is_applied: bool,
    },
    /// A patch that is durable and may be in the file in part: [`Patch::apply`] it.
    Committed(Box<Patch>),
}

/// Writes that are gathered in a log beside the file, and become durable together.
///
/// 1. [`Patch::begin`] makes the log, [`Patch::add`] puts the writes into it. After a stop here the
///    file is as it was, and [`Patch::left_in`] finds [`Leftover::Rest`].
/// 2. [`Patch::commit`] syncs them with a last record. From here on the patch is going to be
///    applied: [`Patch::left_in`] finds [`Leftover::Committed`].
/// 3. [`Patch::apply`] writes them to the file, sorted, and syncs it. After a stop here any part of
///    them is in the file; applying all of them once more completes it.
/// 4. It says so in the log. After a stop from here on the file is as it should be, and
///    [`Patch::left_in`] finds [`Leftover::Rest`].
/// 5. [`Patch::forget`] removes the log.
#[derive(Debug)]
pub struct Patch {
    log: Log,
    name: String,
    file_bytes: u64,
    records: u64,
    /// Of records that may still be in memory. One that is let go is written at once; held, they
    /// are written together.
    tickets: Vec<Ticket>,
}

/// How many writes are in memory at most.
const TICKETS_MAX: usize = 4096;

/// The shortest and the longest segment of the log.
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
    /// Looks what is in the directory `log`, of a patch for the file `name` of `file_bytes`.
    ///
    /// # Errors
    /// [`Error::Foreign`] when it is something else, or for another file; [`Error::Log`] when it
    /// is damaged.
    pub fn left_in(log: &Arc<dyn Disk>, name: &str, file_bytes: u64) -> Result<Leftover> {
        if log.list("")?.is_empty() {
            return Ok(Leftover::Nothing);
        }
        let (opened, found) = recover::open(log, options(0))?;
        let Found { mark, committed, .. } = &found;
        let is_applied = mark.as_ref().is_some_and(|mark| mark.through > Lsn(0));
        let Some(records) = committed.filter(|_| !is_applied) else {
            // One that was never committed may have lost its first segment while it was removed.
            if mark.is_none() && !found.is_foreign {
                return Ok(Leftover::Rest { is_applied });
            }
            found.check(&**log, Owner::Patch, name, u64::MAX)?;
            return Ok(Leftover::Rest { is_applied });
        };
        found.check(&**log, Owner::Patch, name, file_bytes)?;
        let name = name.to_owned();
        let tickets = Vec::new();
        let patch = Self { log: opened, name, file_bytes, records, tickets };
        Ok(Leftover::Committed(Box::new(patch)))
    }

    /// Begins one in the empty directory `log`, which is expected to have about `patch_bytes`.
    ///
    /// # Errors
    /// As the kernel says, and [`Error::Log`] on a full disk.
    pub fn begin(
        log: &Arc<dyn Disk>,
        name: &str,
        file_bytes: u64,
        patch_bytes: u64,
    ) -> Result<Self> {
        let (opened, _nothing) = recover::open(log, options(patch_bytes))?;
        let (name, tickets) = (name.to_owned(), Vec::new());
        let patch = Self { log: opened, name, file_bytes, records: 0, tickets };
        patch.mark(Lsn(0))?;
        Ok(patch)
    }

    /// Adds a write; of overlapping ones the last stands.
    ///
    /// # Errors
    /// [`Error::Log`]; the patch is of no use then.
    ///
    /// # Durability
    /// None until [`Patch::commit`].
    pub fn add(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        crate::writer::check_place(offset, bytes.len())?;
        let mut at = offset;
        for part in bytes.chunks(WRITE_BYTES_MAX) {
            self.tickets.push(self.log.append(&[&write_header(at), part], Room::Ordinary)?);
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

    /// Makes all of it durable.
    ///
    /// # Errors
    /// [`Error::Log`]: whether it is durable is known when [`Patch::left_in`] looks.
    ///
    /// # Durability
    /// When this returns `Ok`, the patch survives a power cut, wholly.
    pub fn commit(&mut self) -> Result<()> {
        // What is on the medium of a log is always its beginning: with the commit, all before it.
        let commit = Record::Commit { records: self.records }.encode();
        self.log.append(&[&commit], Room::Reserve)?.wait()?;
        self.tickets.clear();
        Ok(())
    }

    /// Writes a patch that was committed to its file, telling how many of its writes were handed
    /// over, and waits until it is on the medium.
    ///
    /// # Errors
    /// [`Error::Latched`] and as the kernel says; the patch is still in the log then.
    ///
    /// # Durability
    /// When this returns `Ok`, the file has all of it, on the medium.
    pub fn apply(
        &self,
        writer: &SortedWriter,
        file: FileId,
        told: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        let (mut records, mut bytes_done) = (0, 0);
        let writes = recover::each_write(&self.log, Lsn(0), &mut |_, offset, bytes| {
            writer.write(file, offset, bytes)?;
            records += 1;
            bytes_done += bytes.len() as u64;
            told(records, bytes_done);
            Ok(())
        })?;
        if writes != self.records {
            return Err(Error::Invalid("the log has not all of the writes it was committed with"));
        }
        writer.barrier()?;
        self.mark(self.log.synced())
    }

    /// How many writes it has.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    fn mark(&self, through: Lsn) -> Result<()> {
        let (name, file_bytes) = (&self.name, self.file_bytes);
        let owner = Owner::Patch;
        let mark = Record::Mark { owner, through: through.0, file_bytes, name }.encode();
        self.log.append(&[&mark], Room::Reserve)?.wait()?;
        Ok(())
    }

    /// Removes what is in the directory of a patch that is not open: of one that was applied, or was
    /// never committed.
    /// In ascending order, so that the word that it was applied goes last.
    ///
    /// # Errors
    /// As the kernel says.
    ///
    /// # Durability
    /// It is gone for good when this returns.
    pub fn forget(log: &dyn Disk) -> Result<()> {
        for name in log.list("")? {
            log.remove(&name)?;
            log.sync_dir("")?;
        }
        Ok(())
    }
}
