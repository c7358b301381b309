//! Accepts writes and reads from callers, and hands the writes to the writing thread.

use std::fmt;
use std::sync::Arc;

use haul_disk::{DeviceKind, Disk, Op, read_full};
use haul_sync::thread::JoinHandle;

use crate::error::{Error, Result};
use crate::options::{Options, WRITE_BYTES_MAX};
use crate::round;
use crate::state::{Queue, RoundHook, Shared};
use crate::stats::Stats;
use crate::target::Target;

/// The identifier of a file opened by a [`SortedWriter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId(usize);

/// A writer that buffers random writes to files and writes them by ascending offset.
///
/// All methods may be called from several threads at once. No other program may modify the files
/// while they are open.
pub struct SortedWriter {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl SortedWriter {
    /// Creates a writer without files and starts the writing thread.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if an option is invalid, and [`Error::Disk`] if the thread cannot
    /// be started.
    pub fn start(options: Options) -> Result<Self> {
        Self::with_hook(options, None)
    }

    pub(crate) fn with_hook(options: Options, hook: Option<Arc<dyn RoundHook>>) -> Result<Self> {
        options.check()?;
        let shared = Arc::new(Shared::new(options));
        let thread = round::start(&shared, hook)
            .map_err(|source| haul_disk::Error::new(Op::Open, "the writing thread", source))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Opens an existing file, so that it can be written and read through this writer.
    ///
    /// # Errors
    /// Returns [`Error::Disk`] if the file cannot be opened.
    pub fn open(&self, disk: &dyn Disk, name: &str) -> Result<FileId> {
        let target = Target::open(disk, name, &self.shared.options)?;
        Ok(FileId(self.shared.add_file(target)))
    }

    /// Buffers a write. If the write ends after the end of the file, the file is extended. If
    /// writes overlap, the bytes of the last one are kept. The call blocks while the memory for
    /// buffered writes is full; see [`Options::generation_bytes`].
    ///
    /// A write longer than [`WRITE_BYTES_MAX`] bytes is split into parts. Other threads' writes may
    /// be ordered between these parts.
    ///
    /// # Errors
    /// Returns [`Error::Latched`] after a failed write or sync, and [`Error::Invalid`] if the write
    /// ends after the largest file offset or `file` does not belong to this writer. Nothing was
    /// buffered then, except possibly the first parts of a split write.
    ///
    /// # Durability
    /// None until [`SortedWriter::barrier`] has returned.
    pub fn write(&self, file: FileId, offset: u64, bytes: &[u8]) -> Result<()> {
        self.write_tagged(file, offset, bytes, 0)
    }

    pub(crate) fn write_tagged(
        &self,
        file: FileId,
        offset: u64,
        bytes: &[u8],
        tag: u64,
    ) -> Result<()> {
        check_range(offset, bytes.len())?;
        let mut at = offset;
        for part in bytes.chunks(WRITE_BYTES_MAX) {
            self.shared.push(file.0, at, part, tag)?;
            at += part.len() as u64;
        }
        Ok(())
    }

    /// Reads up to `buffer.len()` bytes at `offset`, including buffered writes. Returns the number
    /// of bytes read, which is less than `buffer.len()` only at the end of the file. Reading is
    /// still possible after a failed write or sync.
    ///
    /// # Errors
    /// Returns [`Error::Disk`] if the file cannot be read, and [`Error::Invalid`] if the range ends
    /// after the largest file offset or `file` does not belong to this writer.
    pub fn read(&self, file: FileId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        check_range(offset, buffer.len())?;
        loop {
            let state = self.shared.state.lock();
            let queue = state.queues.get(file.0).ok_or(NO_FILE)?;
            let rounds_done = state.rounds_done;
            if let Some(read) = read_buffered(queue, offset, buffer) {
                return Ok(read);
            }
            let target = Arc::clone(&queue.target);
            drop(state);
            // The bytes between the end of the file and buffered writes after it are zeros.
            buffer.fill(0);
            read_full(&*target.buffered, buffer, offset)?;
            let state = self.shared.state.lock();
            // A round that ended during the read may have written bytes that are neither in
            // `buffer` nor buffered any more. In this case the read is repeated.
            if state.rounds_done == rounds_done {
                let queue = &state.queues[file.0];
                let available = queue.end().saturating_sub(offset);
                let read = usize::try_from(available).unwrap_or(usize::MAX).min(buffer.len());
                if let Some(writing) = &queue.writing {
                    writing.overlay(&mut buffer[..read], offset);
                }
                queue.filling.overlay(&mut buffer[..read], offset);
                return Ok(read);
            }
        }
    }

    /// Waits until all writes accepted before this call are durable. Concurrent barriers share a
    /// round.
    ///
    /// # Errors
    /// Returns [`Error::Latched`] if a write or a sync has failed, during this call or earlier. It
    /// is then unknown whether the writes since the last barrier are durable.
    ///
    /// # Durability
    /// When this returns `Ok`, every write accepted before this call survives a power cut.
    pub fn barrier(&self) -> Result<()> {
        self.shared.barrier()
    }

    /// Requests a round that writes all buffered writes, without waiting for it.
    pub(crate) fn request_round(&self) {
        self.shared.request_round();
    }

    /// Returns the device kind below a file, as configured or measured. `None` if it is unknown:
    /// the kernel reports no device, or the file has too few written blocks for a measurement.
    #[must_use]
    pub fn device_kind(&self, file: FileId) -> Option<DeviceKind> {
        self.shared.state.lock().queues.get(file.0)?.target.kind()
    }

    /// Returns the file length in bytes, including buffered writes.
    #[must_use]
    pub fn file_bytes(&self, file: FileId) -> u64 {
        self.shared.state.lock().queues.get(file.0).map_or(0, Queue::end)
    }

    /// Returns the counters since the writer was started.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let stats = self.shared.state.lock().stats;
        self.shared.counters.merge(stats)
    }

    /// Executes a last barrier and ends the writing thread. Dropping the writer has the same
    /// effect, but ignores errors.
    ///
    /// # Errors
    /// Fails like [`SortedWriter::barrier`].
    pub fn close(mut self) -> Result<()> {
        self.finish()
    }

    fn finish(&mut self) -> Result<()> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let result = self.shared.barrier();
        self.shared.close();
        drop(thread.join());
        result
    }
}

const NO_FILE: Error = Error::Invalid("the file id does not belong to this writer");

/// Checks that a range does not end after the largest file offset.
pub(crate) fn check_range(offset: u64, bytes: usize) -> Result<()> {
    let end = offset.checked_add(bytes as u64);
    if end.is_none_or(|end| i64::try_from(end).is_err()) {
        return Err(Error::Invalid("the range ends beyond the largest file offset"));
    }
    Ok(())
}

/// Copies the requested bytes into `buffer` if a single buffered write contains all of them, so
/// that the file need not be read. Otherwise returns `None`.
fn read_buffered(queue: &Queue, offset: u64, buffer: &mut [u8]) -> Option<usize> {
    if buffer.is_empty() {
        return Some(0);
    }
    let newest = queue.filling.newest_covering(offset, buffer.len());
    newest.map(|_| {
        queue.filling.overlay(buffer, offset);
        buffer.len()
    })
}

impl Drop for SortedWriter {
    fn drop(&mut self) {
        drop(self.finish());
    }
}

impl fmt::Debug for SortedWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SortedWriter").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
