//! A file whose random writes are durable when acknowledged: log first, sorted checkpoints later.

mod checkpoint;
mod format;
mod patch;
mod recover;

use std::fmt;
use std::sync::Arc;

use haul_append_log::{Log, Lsn, Position, Room, Ticket};
use haul_disk::{Disk, Open};
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::options::{Options, Role, WRITE_BYTES_MAX};
use crate::page_file::checkpoint::Checkpoints;
use crate::page_file::format::{Owner, write_header};
use crate::stats::Stats;
use crate::writer::{FileId, SortedWriter};

pub use patch::{Leftover, Patch};

/// How a page file behaves.
#[derive(Debug, Clone)]
pub struct PageFileOptions {
    /// How checkpoints are written. A generation that is full begins one.
    pub sorted: Options,
    /// How far the log may be ahead of the file: at half of that a checkpoint begins, at all of it
    /// writers wait for one. 256 MiB; 8 MiB to 8 GiB. On the disk the log takes up to five
    /// eighths more, for segments that are prepared, kept, or removed in part.
    pub log_bytes_max: u64,
    /// How the log writes; its segments are an eighth of `log_bytes_max`, whatever is said here.
    pub log: haul_append_log::Options,
}

impl Default for PageFileOptions {
    fn default() -> Self {
        Self {
            sorted: Options::default(),
            log_bytes_max: 256 << 20,
            log: haul_append_log::Options::default(),
        }
    }
}

impl PageFileOptions {
    fn segment_bytes(&self) -> Result<u32> {
        if !(8 << 20..=8 << 30).contains(&self.log_bytes_max) {
            return Err(Error::Invalid("log_bytes_max must lie between 8 MiB and 8 GiB"));
        }
        let pages = self.log_bytes_max / 8 / 4096;
        Ok(u32::try_from(pages * 4096).unwrap_or(1 << 30))
    }
}

/// What opening a page file did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// Writes of the log that were carried out again; 0 after it was closed.
    pub replayed: u64,
}

/// A file and its log.
///
/// All calls may be made from several threads at once. File and log are its alone while it is
/// open; its owner keeps other processes out ([`haul_disk::DirLock`]).
pub struct PageFile {
    writer: SortedWriter,
    file: FileId,
    log: Arc<Log>,
    checkpoints: Arc<Checkpoints>,
    log_bytes_max: u64,
    segment_bytes: u32,
    /// The order of the log is the order in memory. Where the last checkpoint was asked for.
    order: Mutex<Lsn>,
}

impl PageFile {
    /// Opens the file `name` of `disk`, which is there, with its log in the root of `log`: an empty
    /// directory, or the one it had before.
    ///
    /// 1. The log is opened, and its end found. Only a log of this file is used.
    /// 2. What is behind its last mark is written to the file again, in the order of the log, and
    ///    synced. After a stop here it is done once more, from the same mark or a later one.
    /// 3. A mark says so, and the log in front of it is removed.
    ///
    /// # Errors
    /// [`Error::Foreign`] for the log of another file, [`Error::Log`] for a damaged one,
    /// [`Error::Invalid`] for options that cannot work, and as the kernel says.
    ///
    /// # Durability
    /// All writes that were acknowledged are in the file, and on the medium.
    pub fn open(
        disk: &dyn Disk,
        name: &str,
        log: &Arc<dyn Disk>,
        options: PageFileOptions,
    ) -> Result<(Self, Opened)> {
        let segment_bytes = options.segment_bytes()?;
        let log_options = haul_append_log::Options {
            segment_bytes,
            buffer_bytes: options.log.buffer_bytes.min(segment_bytes),
            reserve_bytes: options.log.reserve_bytes.min(segment_bytes / 4),
            ..options.log
        };
        let log_disk = log;
        let target = disk.open(name, Open::default())?;
        let file_bytes = target.bytes()?;
        let (log, found) = recover::open(log_disk, log_options)?;
        found.check(&**log_disk, Owner::PageFile, name, file_bytes)?;
        let log = Arc::new(log);
        let through = found.mark.as_ref().map_or(Lsn(0), |mark| mark.through);
        let checkpoints = Arc::new(Checkpoints::new(Arc::clone(&log), target, name, through));
        if found.mark.is_none() {
            checkpoints.mark(Lsn(0))?;
        }
        let writer = SortedWriter::with_gate(options.sorted, Some(Arc::clone(&checkpoints) as _))?;
        let file = writer.open(disk, name, Role::Bulk)?;
        let replayed = recover::each_write(&log, through, &mut |lsn, offset, bytes| {
            writer.write_tagged(file, offset, bytes, lsn.0)
        })?;
        writer.barrier()?;
        let page_file = Self {
            writer,
            file,
            order: Mutex::new(checkpoints.through()),
            log,
            checkpoints,
            log_bytes_max: options.log_bytes_max,
            segment_bytes,
        };
        Ok((page_file, Opened { replayed }))
    }

    /// Takes a write of at most [`WRITE_BYTES_MAX`]. It blocks while memory or the log are full of
    /// what no checkpoint has brought to the file yet. Whoever reads sees it at once.
    ///
    /// # Errors
    /// [`Error::TooLong`], or that of the log where its segments are short; [`Error::Log`] with `Full` when the disk of the log is full and a
    /// checkpoint did not help: nothing was taken then, and all goes on once there is space.
    /// [`Error::Latched`], and `Latched` of the log, after a failed write or sync: open it again.
    ///
    /// # Durability
    /// None until the ticket was waited for. Then it survives a power cut, and so do all taken
    /// before. Each write is there after a crash wholly or not at all.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<Ticket> {
        if bytes.len() > WRITE_BYTES_MAX {
            let (bytes, bytes_max) = (bytes.len() as u64, WRITE_BYTES_MAX as u64);
            return Err(Error::TooLong { bytes, bytes_max });
        }
        crate::writer::check_place(offset, bytes.len())?;
        match self.append(offset, bytes) {
            // What a checkpoint removes from the log may be the space that is missing.
            Err(error) if error.is_full() && !self.log.is_latched() => {
                self.checkpoint()?;
                self.append(offset, bytes)
            }
            outcome => outcome,
        }
    }

    fn append(&self, offset: u64, bytes: &[u8]) -> Result<Ticket> {
        let (ticket, at) = {
            let mut asked = self.order.lock();
            let ticket = self.log.append(&[&write_header(offset), bytes], Room::Ordinary)?;
            let Position { lsn, .. } = ticket.position();
            self.writer.write_tagged(self.file, offset, bytes, lsn.0)?;
            if self.between(*asked, lsn) > self.log_bytes_max / 2 {
                *asked = lsn;
                self.writer.begin_round();
            }
            (ticket, lsn)
        };
        if self.between(self.checkpoints.through(), at) > self.log_bytes_max {
            self.checkpoint()?;
        }
        Ok(ticket)
    }

    /// The bytes of the log between two records, at most.
    fn between(&self, from: Lsn, to: Lsn) -> u64 {
        let at = |lsn: Lsn| {
            u64::from(lsn.segment()) * u64::from(self.segment_bytes) + u64::from(lsn.offset())
        };
        at(to).saturating_sub(at(from))
    }

    /// Reads up to `buffer.len()` bytes at `offset`, the newest there are, acknowledged or not, and
    /// says how many it got: fewer only where the file ends.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.writer.read(self.file, offset, buffer)
    }

    /// Waits until everything taken is acknowledged.
    ///
    /// # Errors
    /// `Latched` of the log.
    ///
    /// # Durability
    /// When this returns `Ok`, every write taken before survives a power cut.
    pub fn sync(&self) -> Result<()> {
        Ok(self.log.sync()?)
    }

    /// Brings everything taken to its place in the file, and waits for it.
    ///
    /// # Errors
    /// [`Error::Latched`] after a failed write or sync.
    ///
    /// # Durability
    /// Every write taken before is in the file, and synced there.
    pub fn checkpoint(&self) -> Result<()> {
        self.writer.barrier()
    }

    /// How long the file is, with what is still in memory.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.writer.end_of(self.file)
    }

    /// Counters of the checkpoints.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.writer.stats()
    }

    /// Counters of the log.
    #[must_use]
    pub fn log_stats(&self) -> haul_append_log::Stats {
        self.log.stats()
    }

    /// How many bytes the segments of the log have.
    #[must_use]
    pub fn log_bytes(&self) -> u64 {
        self.log.segments().iter().map(|segment| u64::from(segment.bytes)).sum()
    }

    /// A last checkpoint. Opened again, there is nothing to do. Dropping it does the same and keeps
    /// failures to itself.
    ///
    /// # Errors
    /// As [`PageFile::checkpoint`]; what was acknowledged is in the log all the same.
    pub fn close(self) -> Result<()> {
        self.writer.close()?;
        drop(self.checkpoints);
        match Arc::into_inner(self.log) {
            Some(log) => Ok(log.close()?),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for PageFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageFile").field("writer", &self.writer).finish_non_exhaustive()
    }
}
