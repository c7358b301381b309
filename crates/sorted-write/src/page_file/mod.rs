//! Makes random writes to a file durable when they are acknowledged: each write is appended to a
//! write-ahead log, and a checkpoint later writes the logged writes to the file in ascending order.

mod checkpoint;
mod create;
mod format;
mod patch;
mod recover;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use haul_append_log::{Log, Lsn, Position, SpacePriority, Ticket};
use haul_disk::{Disk, Lock, Locked, Open, OsDisk, this_process};
use haul_sync::Mutex;

use crate::error::{Error, Result};
use crate::options::{Options, WRITE_BYTES_MAX};
use crate::page_file::checkpoint::Checkpoints;
use crate::page_file::create::create_missing;
use crate::page_file::format::{LogKind, encode_write_header};
use crate::stats::Stats;
use crate::writer::{FileId, SortedWriter};

pub use patch::{Patch, PatchState};

/// The number of concurrent requests in a checkpoint, unless the options set another: few enough
/// that the log does not wait long for the device.
const CHECKPOINT_DEPTH: u32 = 32;

/// The number of segments that hold the log's maximum length.
const SEGMENTS: u32 = 8;

/// Options of a page file.
#[derive(Debug, Clone)]
pub struct PageFileOptions {
    /// The options for the writer that executes checkpoints. A checkpoint starts when the buffered
    /// writes take [`Options::generation_bytes`] of memory, or at half of `log_bytes_max`.
    pub sorted: Options,
    /// The maximum number of bytes in the log since the last checkpoint, 8 MiB to 8 GiB. At half of
    /// this number a checkpoint starts; at the full number writers wait for a checkpoint. The log's
    /// files take up to five eighths more on disk, for segments that are preallocated, kept as
    /// spare files for recycling, or partly obsolete. Default: 256 MiB.
    pub log_bytes_max: u64,
    /// The log's options. `segment_bytes` and `spare_segments_max` are ignored: the segment length
    /// is an eighth of `log_bytes_max`, and all segments are recycled. `buffer_bytes` is limited to
    /// the length of a segment, and `reserve_bytes` to a quarter of it.
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
            return Err(Error::Invalid("log_bytes_max must be between 8 MiB and 8 GiB"));
        }
        let pages = self.log_bytes_max / u64::from(SEGMENTS) / 4096;
        Ok(u32::try_from(pages * 4096).unwrap_or(1 << 30))
    }
}

/// The result of recovery when the page file was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovery {
    /// The number of writes replayed from the log; 0 after a clean close.
    pub replayed: u64,
}

/// An open page file: a file with a write-ahead log, which makes each write durable before it is in
/// the file.
///
/// All methods may be called from several threads at once. The file and its log are locked while
/// the page file is open.
pub struct PageFile {
    writer: SortedWriter,
    file: FileId,
    log: Arc<Log>,
    checkpoints: Arc<Checkpoints>,
    log_bytes_max: u64,
    segment_bytes: u32,
    /// The LSN (log sequence number) of the write that requested the last checkpoint. This lock is
    /// held while a write is appended to the log and then buffered, so that the log and the buffer
    /// have the writes in the same order.
    checkpoint_requested: Mutex<Lsn>,
    /// The file's lock; the log has a separate lock. This field is declared last, so that the lock
    /// is released last.
    _lock: Lock,
}

impl PageFile {
    /// Opens the file at `path`, with its log in the directory `path.log` beside it. Creates the
    /// file and the log if they are missing. If there is no log yet and the file is shorter than
    /// `bytes`, extends the file to this length.
    ///
    /// # Errors
    /// Fails like [`PageFile::open`], and with [`Error::LogMismatch`] if the log exists and its
    /// file is missing.
    ///
    /// # Durability
    /// Like [`PageFile::open`]. A file created by this call survives a power cut.
    pub fn open_path(
        path: impl AsRef<Path>,
        bytes: u64,
        options: PageFileOptions,
    ) -> Result<(Self, Recovery)> {
        options.segment_bytes()?;
        let path = path.as_ref();
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or(Error::Invalid("the name of a page file must be UTF-8"))?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        let disk = OsDisk::open_or_create(parent)?;
        let log: Arc<dyn Disk> =
            Arc::new(OsDisk::open_or_create(parent.join(format!("{name}.log")))?);
        create_missing(&disk, name, bytes, &*log)?;
        Self::open(&disk, name, &log, options)
    }

    /// Opens the existing file `name` of `disk`, with its log in the root directory of `log`. This
    /// directory must be empty or contain this file's log.
    ///
    /// 1. The log is opened and checked to belong to this file.
    /// 2. The writes after the last checkpoint record are replayed in order, and the file is
    ///    synced. After a crash during this step, the next opening repeats the replay.
    /// 3. A checkpoint record is appended to the log, and the log before it is removed.
    ///
    /// # Errors
    /// Returns [`Error::InUse`] if the file or its log is already open, in this process or another
    /// one, [`Error::LogMismatch`] if the log belongs to another file, [`Error::Log`] if the log is
    /// damaged, [`Error::Invalid`] if an option is invalid, and [`Error::Disk`] if a system call
    /// fails.
    ///
    /// # Durability
    /// When this returns `Ok`, all writes that were ever acknowledged are durable in the file.
    pub fn open(
        disk: &dyn Disk,
        name: &str,
        log: &Arc<dyn Disk>,
        options: PageFileOptions,
    ) -> Result<(Self, Recovery)> {
        let segment_bytes = options.segment_bytes()?;
        let log_options = haul_append_log::Options {
            segment_bytes,
            buffer_bytes: options.log.buffer_bytes.min(segment_bytes),
            reserve_bytes: options.log.reserve_bytes.min(segment_bytes / 4),
            // A checkpoint removes half the segments at once. All are recycled, because filling new
            // files with zeros would write as many bytes as the log itself.
            spare_segments_max: SEGMENTS,
            ..options.log
        };
        let log_disk = log;
        let lock = match disk.lock(name, &this_process())? {
            Locked::Acquired(lock) => lock,
            Locked::HeldBy(holder) => {
                return Err(Error::InUse { path: disk.root().join(name), holder });
            }
        };
        let target = disk.open(name, Open::default())?;
        let file_bytes = target.bytes()?;
        let (log, summary) = recover::open(log_disk, log_options)?;
        summary.check(&**log_disk, LogKind::PageFile, name, file_bytes)?;
        let log = Arc::new(log);
        let through = summary.checkpoint.as_ref().map_or(Lsn(0), |checkpoint| checkpoint.through);
        let checkpoints = Arc::new(Checkpoints::new(Arc::clone(&log), target, name, through));
        if summary.checkpoint.is_none() {
            checkpoints.append_record(Lsn(0))?;
        }
        let sorted = Options {
            queue_depth: options.sorted.queue_depth.or(Some(CHECKPOINT_DEPTH)),
            ..options.sorted
        };
        let writer = SortedWriter::with_hook(sorted, Some(Arc::clone(&checkpoints) as _))?;
        let file = writer.open(disk, name)?;
        let replayed = recover::for_each_write(&log, through, &mut |lsn, offset, bytes| {
            writer.write_tagged(file, offset, bytes, lsn.0)
        })?;
        writer.barrier()?;
        let page_file = Self {
            writer,
            file,
            checkpoint_requested: Mutex::new(checkpoints.through()),
            log,
            checkpoints,
            log_bytes_max: options.log_bytes_max,
            segment_bytes,
            _lock: lock,
        };
        Ok((page_file, Recovery { replayed }))
    }

    /// Buffers a write of at most [`WRITE_BYTES_MAX`] bytes and appends it to the log. Readers see
    /// it at once. The call blocks while the memory or the log is full, until a checkpoint has
    /// written to the file.
    ///
    /// # Errors
    /// Returns [`Error::TooLong`] if the write is too long, or [`Error::Log`] with `TooLong` if a
    /// log segment is too short for it. Returns [`Error::Log`] with `Full` if the log's disk is
    /// full and a checkpoint freed no space: the write was not accepted, and later writes succeed
    /// once there is space. Returns [`Error::Latched`], or [`Error::Log`] with `Latched`, after a
    /// failed write or sync: open the page file again.
    ///
    /// # Durability
    /// None until the ticket was awaited. Then this write and all writes accepted before it survive
    /// a power cut. After a crash and recovery, a write is in the file completely or not at all.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<Ticket> {
        if bytes.len() > WRITE_BYTES_MAX {
            let (bytes, bytes_max) = (bytes.len() as u64, WRITE_BYTES_MAX as u64);
            return Err(Error::TooLong { bytes, bytes_max });
        }
        crate::writer::check_range(offset, bytes.len())?;
        match self.append(offset, bytes) {
            // A checkpoint may free space by removing log segments.
            Err(error) if error.is_full() && !self.log.is_latched() => {
                self.checkpoint()?;
                self.append(offset, bytes)
            }
            result => result,
        }
    }

    fn append(&self, offset: u64, bytes: &[u8]) -> Result<Ticket> {
        let (ticket, at) = {
            let mut requested = self.checkpoint_requested.lock();
            let ticket =
                self.log.append(&[&encode_write_header(offset), bytes], SpacePriority::Ordinary)?;
            let Position { lsn, .. } = ticket.position();
            self.writer.write_tagged(self.file, offset, bytes, lsn.0)?;
            if self.log_distance(*requested, lsn) > self.log_bytes_max / 2 {
                *requested = lsn;
                self.writer.request_round();
            }
            (ticket, lsn)
        };
        if self.log_distance(self.checkpoints.through(), at) > self.log_bytes_max {
            self.checkpoint()?;
        }
        Ok(ticket)
    }

    /// Returns an upper bound for the log bytes between two records.
    fn log_distance(&self, from: Lsn, to: Lsn) -> u64 {
        let at = |lsn: Lsn| {
            u64::from(lsn.segment()) * u64::from(self.segment_bytes) + u64::from(lsn.offset())
        };
        // Another thread's checkpoint may be newer than the record.
        at(to).saturating_sub(at(from))
    }

    /// Reads up to `buffer.len()` bytes at `offset`, including writes that are not durable yet.
    /// Returns the number of bytes read, which is less than `buffer.len()` only at the end of the
    /// file.
    ///
    /// # Errors
    /// Returns [`Error::Disk`] if the file cannot be read, and [`Error::Invalid`] if the range ends
    /// after the largest file offset.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.writer.read(self.file, offset, buffer)
    }

    /// Waits until all accepted writes are durable in the log.
    ///
    /// # Errors
    /// Returns [`Error::Log`] with `Latched` if writing or syncing the log failed.
    ///
    /// # Durability
    /// When this returns `Ok`, every write accepted before this call survives a power cut.
    pub fn sync(&self) -> Result<()> {
        Ok(self.log.sync()?)
    }

    /// Writes all accepted writes to the file, and waits until they are durable in it.
    ///
    /// # Errors
    /// Returns [`Error::Latched`] if a write or sync failed, during this call or earlier.
    ///
    /// # Durability
    /// When this returns `Ok`, every write accepted before this call is durable in the file itself.
    pub fn checkpoint(&self) -> Result<()> {
        self.writer.barrier()
    }

    /// Returns the file length in bytes, including buffered writes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.writer.file_bytes(self.file)
    }

    /// Returns the counters of the writer that executes checkpoints.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.writer.stats()
    }

    /// Returns the log's counters.
    #[must_use]
    pub fn log_stats(&self) -> haul_append_log::Stats {
        self.log.stats()
    }

    /// Returns the total length of the log's segments in bytes.
    #[must_use]
    pub fn log_bytes(&self) -> u64 {
        self.log.segments().iter().map(|segment| u64::from(segment.bytes)).sum()
    }

    /// Executes a last checkpoint, so that the next opening replays nothing. Dropping the page file
    /// has the same effect, but ignores errors.
    ///
    /// # Errors
    /// Fails like [`PageFile::checkpoint`] and like closing the log. Acknowledged writes are then
    /// still in the log.
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
