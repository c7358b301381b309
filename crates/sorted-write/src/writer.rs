//! The writer as its owner sees it.

use std::fmt;
use std::sync::Arc;
use std::thread::JoinHandle;

use haul_disk::{Disk, Op, read_full};

use crate::error::{Error, Result};
use crate::options::{Options, Role, WRITE_BYTES_MAX};
use crate::round;
use crate::state::{Gate, Queue, Shared};
use crate::stats::Stats;
use crate::target::Target;

/// A file of a [`SortedWriter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId(usize);

/// Gathers writes at random places, and writes them in one direction.
///
/// All calls may be made from several threads at once. The files are its alone while it is open:
/// nobody else writes to them.
pub struct SortedWriter {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl SortedWriter {
    /// A writer without files, and its thread.
    ///
    /// # Errors
    /// [`Error::Invalid`] for options that cannot work; when no thread can be started.
    pub fn start(options: Options) -> Result<Self> {
        Self::with_gate(options, None)
    }

    pub(crate) fn with_gate(options: Options, gate: Option<Arc<dyn Gate>>) -> Result<Self> {
        options.check()?;
        let shared = Arc::new(Shared::new(options));
        let thread = round::start(&shared, gate)
            .map_err(|source| haul_disk::Error::new(Op::Open, "the writing thread", source))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Opens a file that is there, to be written in `role`.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn open(&self, disk: &dyn Disk, name: &str, role: Role) -> Result<FileId> {
        let target = Target::open(disk, name, role, &self.shared.options)?;
        let mut state = self.shared.state.lock();
        state.queues.push(Queue::new(target));
        Ok(FileId(state.queues.len() - 1))
    }

    /// Takes a write. Behind the end of the file it makes it longer. It blocks while both
    /// generations are full. Of overlapping writes the last one stands.
    ///
    /// More than [`WRITE_BYTES_MAX`] are taken in parts, between which others may come.
    ///
    /// # Errors
    /// [`Error::Latched`] after a failure, [`Error::Invalid`] where it would end behind the
    /// largest offset there is. Nothing was taken then, of a long write perhaps a part.
    ///
    /// # Durability
    /// None until [`SortedWriter::barrier`].
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
        check_place(offset, bytes.len())?;
        let mut at = offset;
        for part in bytes.chunks(WRITE_BYTES_MAX) {
            self.shared.push(file.0, at, part, tag)?;
            at += part.len() as u64;
        }
        Ok(())
    }

    /// Reads up to `buffer.len()` bytes at `offset`, the newest there are, and says how many it
    /// got: fewer only where the file ends. Also after a failure it shows what was taken.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn read(&self, file: FileId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        check_place(offset, buffer.len())?;
        loop {
            let state = self.shared.state.lock();
            let queue = state.queues.get(file.0).ok_or(NO_FILE)?;
            let rounds_done = state.rounds_done;
            if let Some(read) = from_memory(queue, offset, buffer) {
                return Ok(read);
            }
            let target = Arc::clone(&queue.target);
            drop(state);
            // Zeros where the file ends in front of what is in memory.
            buffer.fill(0);
            read_full(&*target.buffered, buffer, offset)?;
            let state = self.shared.state.lock();
            // Where a round ended meanwhile, its bytes may be missing in what was read, and are
            // no longer in memory.
            if state.rounds_done == rounds_done {
                let queue = &state.queues[file.0];
                let there = queue.end().saturating_sub(offset);
                let read = usize::try_from(there).unwrap_or(usize::MAX).min(buffer.len());
                if let Some(writing) = &queue.writing {
                    writing.lay_over(&mut buffer[..read], offset);
                }
                queue.filling.lay_over(&mut buffer[..read], offset);
                return Ok(read);
            }
        }
    }

    /// Waits until everything taken before is on the medium. Barriers that wait at the same time
    /// share a round.
    ///
    /// # Errors
    /// [`Error::Latched`]: a write or a sync failed, now or earlier. What of the writes since the
    /// last barrier survives is not known.
    ///
    /// # Durability
    /// When this returns `Ok`, every write taken before survives a power cut.
    pub fn barrier(&self) -> Result<()> {
        self.shared.barrier()
    }

    /// Begins to write what is in memory, and does not wait for it.
    pub(crate) fn begin_round(&self) {
        self.shared.begin_round();
    }

    /// Where the file ends, with what is still in memory.
    #[must_use]
    pub fn end_of(&self, file: FileId) -> u64 {
        self.shared.state.lock().queues.get(file.0).map_or(0, Queue::end)
    }

    /// Counters since the start.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let taken = self.shared.state.lock().stats;
        self.shared.counters.fill(taken)
    }

    /// A last barrier, and the end of the thread. Dropping the writer does the same and keeps
    /// failures to itself.
    ///
    /// # Errors
    /// As [`SortedWriter::barrier`].
    pub fn close(mut self) -> Result<()> {
        self.finish()
    }

    fn finish(&mut self) -> Result<()> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let synced = self.shared.barrier();
        self.shared.state.lock().is_closing = true;
        self.shared.work.notify_all();
        drop(thread.join());
        synced
    }
}

const NO_FILE: Error = Error::Invalid("the file is not one of this writer");

/// Refuses what would end behind the largest offset of a file.
pub(crate) fn check_place(offset: u64, bytes: usize) -> Result<()> {
    let end = offset.checked_add(bytes as u64);
    if end.is_none_or(|end| i64::try_from(end).is_err()) {
        return Err(Error::Invalid("it would end behind the largest offset a file can have"));
    }
    Ok(())
}

/// Where one write in memory has all that is asked for, no file need be read.
fn from_memory(queue: &Queue, offset: u64, buffer: &mut [u8]) -> Option<usize> {
    if buffer.is_empty() {
        return Some(0);
    }
    let newest = queue.filling.newest_around(offset, buffer.len());
    newest.map(|_| {
        queue.filling.lay_over(buffer, offset);
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
