//! Buffers random writes, sorts and merges them, and writes them to the files in ascending order.
//!
//! # What it is
//! - [`SortedWriter`] buffers random writes to several files in bounded memory. It has two sets of
//!   buffers, called generations: callers fill one generation while a thread writes the other to
//!   the files. Writing a generation is called a round. A round sorts the writes, drops bytes that
//!   later writes overwrote, merges neighbours, and writes each file in one sweep in ascending
//!   order.
//! - [`PageFile`] is a file whose writes are durable when acknowledged: each write is first
//!   appended to a write-ahead log, and a later checkpoint writes it to the file in a round.
//! - [`Patch`] applies many writes to a file atomically.
//! - [`plan`] is the planner: a function from writes to requests that performs no I/O.
//! - [`records`] reads the writes to make from a stream or from a file list.
//!
//! # Example
//! ```
//! use haul_disk::OsDisk;
//! use haul_sorted_write::{Options, SortedWriter};
//!
//! # fn main() -> haul_sorted_write::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # std::fs::write(dir.path().join("big"), vec![0; 1 << 20]).unwrap();
//! let disk = OsDisk::open(dir.path())?;
//! let writer = SortedWriter::start(Options::default())?;
//! let big = writer.open(&disk, "big")?;
//! for n in (0..200_u64).rev() {
//!     writer.write(big, n * 5000, &n.to_le_bytes())?; // from any thread, in any order
//! }
//! let mut newest = [0; 8];
//! writer.read(big, 199 * 5000, &mut newest)?; // includes buffered writes
//! assert_eq!(u64::from_le_bytes(newest), 199);
//! writer.barrier()?; // the writes are durable now
//! let stats = writer.stats();
//! assert!(stats.seek_bytes < stats.unsorted_seek_bytes);
//! # writer.close()
//! # }
//! ```
//! In a page file, a write is durable once its ticket was awaited. After `close`, all writes are in
//! the file itself:
//! ```
//! use haul_sorted_write::{PageFile, PageFileOptions};
//!
//! # fn main() -> haul_sorted_write::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("data");
//! # let options = PageFileOptions { log_bytes_max: 8 << 20, ..PageFileOptions::default() };
//! let (data, _replayed) = PageFile::open_path(path, 1 << 20, options)?; // created if missing
//! let ticket = data.write(4096, b"hello")?;
//! ticket.wait()?; // durable in the log; or .await
//! data.close()?; // durable in the file itself
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//! | after a successful call, data survives | a killed process | a power cut |
//! |---|---|---|
//! | [`SortedWriter::write`] | no: it is buffered in memory | no |
//! | [`SortedWriter::barrier`], [`SortedWriter::close`] | all earlier writes | the same |
//! | [`PageFile::write`] | no | no |
//! | waiting for the ticket of a write, [`PageFile::sync`] | all writes up to this one | the same |
//! | [`PageFile::checkpoint`], [`PageFile::close`] | all earlier writes, in the file itself | the same |
//! | [`Patch::commit`] | the patch, once applied | the same |
//!
//! - A read returns the newest bytes, whether they are buffered or in the file.
//! - After a crash and recovery, a page file contains all writes up to some write and no later one.
//!   No acknowledged write is lost, no write is torn, and bytes that were not written are
//!   unchanged.
//! - A failed write or sync is final: all waiting callers receive the error and no further writes
//!   are accepted. Buffered writes remain readable. A page file's log keeps its records, which the
//!   next opening replays.
//! - A page file can be open only once: opening it a second time, in this process or another
//!   process, fails.
//! - The length of a page file's log is bounded. If the log's disk is full, [`PageFile::write`]
//!   fails, and that write is neither buffered nor logged.
//!
//! # Cost
//! | | |
//! |---|---|
//! | a buffered write | one copy and 64 bytes of overhead; no memory if it overwrites buffered bytes |
//! | a round | a sort, one write request for each run of neighbours, and before it one read for each run of partially written units |
//! | a barrier | a round and one sync per file |
//! | a write to a page file | its bytes in the log, a share of one sync, and later a share of a request |
//!
//! A round starts at the lowest offset and ends at the highest, and the next round starts at the
//! lowest again (C-SCAN). The long seek back costs a rotational disk about as much as two or three
//! requests. A downward sweep would avoid this seek, but reach neighbouring requests against the
//! direction of rotation. A sweep is divided into windows of limited size: all of a window's reads
//! precede its writes. On a rotational disk each window is also synced before the next one is read.
//! Otherwise the drive would hold the writes in its write cache and seek back for them later. In
//! the disk model (`examples/spinning.rs`) these syncs make rounds with sparse records nearly twice
//! as fast.
//!
//! A few direct reads of the file measure whether a device is rotational, unless the kernel reports
//! it as solid-state: virtual disks set the kernel's `rotational` flag wrongly. On a solid-state
//! device, 128 requests are in flight; on a rotational device 32, as many as its queue holds.
//!
//! Two requests are merged into one by reading the gap between them and writing it back, if the
//! transfer of the gap takes less time than the requests that this saves; see
//! [`plan::Costs::should_fill`].
//!
//! A unit is the smallest write that the device executes without reading, such as 4 KiB. Writes of
//! whole units bypass the page cache (`O_DIRECT`), so that the device receives the requests as
//! planned and memory holds no second copy of the bytes. Requests pass through io_uring in batches,
//! which takes half the CPU time that writes through the page cache take; without io_uring, a few
//! threads call `pwrite`. Only the incomplete unit at the end of a file is written through the page
//! cache. A file is synced after every [`Options::sync_bytes`], well below the dirty-page limits at
//! which the kernel throttles writers.
//!
//! # What it is not
//! A single large batch of whole pages gains nothing over sorting the pages and writing them
//! through the page cache: the writer then only takes less memory (`docs/random-writes.md` has the
//! figures). The writer is not a cache: bytes are dropped from memory once they are written to the
//! file. A [`SortedWriter`] does not create files, and no other program may modify its files while
//! they are open. There are no transactions over several files. A page file has neither a file
//! format nor a fixed page size.
//!
//! # Sources
//! Keys refer to `docs/sources.md`: \[Coffman72\] for sweeps in one direction, \[ONeil96\] for
//! buffering and merging in memory, \[Mohan92\] for write-ahead logging, \[Rebello20\] for failed
//! syncs.

mod batch;
mod buffers;
mod device;
mod engine;
mod error;
mod memory;
mod options;
mod page_file;
mod parallel;
pub mod plan;
pub mod records;
mod round;
mod state;
mod stats;
mod sweep;
mod target;
mod writer;

pub use error::{Error, Result};
pub use options::{Options, WRITE_BYTES_MAX};
pub use page_file::{PageFile, PageFileOptions, Patch, PatchState, Recovery};
pub use stats::Stats;
pub use writer::{FileId, SortedWriter};
