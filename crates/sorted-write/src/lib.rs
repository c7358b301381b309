//! Random writes, gathered, sorted, merged and written in one direction.
//!
//! # What it is
//! - [`SortedWriter`] takes writes at any place of some files into bounded memory: one generation
//!   fills while the other is written. A round sorts them, lets the last of overlapping ones
//!   stand, merges neighbours, and sweeps over each file once, upward.
//! - [`PageFile`] is a file on it whose writes are durable when acknowledged: an append log has
//!   them first, a sweep brings them to their place later.
//! - [`Patch`] makes many writes to a file one: all of them, or none.
//! - [`plan`] is what happens between: a pure function from writes to requests.
//!
//! # Example
//! ```
//! use haul_disk::OsDisk;
//! use haul_sorted_write::{Options, Role, SortedWriter};
//!
//! # fn main() -> haul_sorted_write::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # std::fs::write(dir.path().join("big"), vec![0; 1 << 20]).unwrap();
//! let disk = OsDisk::open(dir.path())?;
//! let writer = SortedWriter::start(Options::default())?;
//! let big = writer.open(&disk, "big", Role::Bulk)?;
//! for n in (0..200_u64).rev() {
//!     writer.write(big, n * 5000, &n.to_le_bytes())?; // from any thread, in any order
//! }
//! let mut newest = [0; 8];
//! writer.read(big, 199 * 5000, &mut newest)?; // also while it is in memory alone
//! assert_eq!(u64::from_le_bytes(newest), 199);
//! writer.barrier()?; // from here on they survive a power cut
//! let stats = writer.stats();
//! assert!(stats.travel_bytes < stats.given_travel_bytes);
//! # writer.close()
//! # }
//! ```
//! Durable one by one, or all together:
//! ```
//! use std::sync::Arc;
//! use haul_disk::{Disk, OsDisk};
//! use haul_sorted_write::{PageFile, PageFileOptions};
//!
//! # fn main() -> haul_sorted_write::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # std::fs::write(dir.path().join("data"), vec![0; 1 << 20]).unwrap();
//! # std::fs::create_dir(dir.path().join("data.log")).unwrap();
//! # let options = PageFileOptions { log_bytes_max: 8 << 20, ..PageFileOptions::default() };
//! let disk = OsDisk::open(dir.path())?;
//! let log: Arc<dyn Disk> = Arc::new(OsDisk::open(dir.path().join("data.log"))?);
//! let (data, _replayed) = PageFile::open(&disk, "data", &log, options)?;
//! let ticket = data.write(4096, b"hello")?;
//! ticket.wait()?; // on the medium, in the log; or .await
//! data.close()?; //  and in its place
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//! | call, when it has returned without an error | killed | power cut |
//! |---|---|---|
//! | [`SortedWriter::write`] | no: it is in memory | no |
//! | [`SortedWriter::barrier`], [`SortedWriter::close`] | all written before | the same |
//! | [`PageFile::write`] | no | no |
//! | its ticket waited for, [`PageFile::sync`] | that write and all before it | the same |
//! | [`PageFile::checkpoint`], [`PageFile::close`] | all, in the file itself | the same |
//! | [`Patch::commit`] | all of it, once it is applied | the same |
//!
//! - A read shows the newest bytes, wherever they are.
//! - After a crash a page file is as after one of its writes, none acknowledged missing: each is
//!   there wholly or not at all. Bytes nobody wrote are as they were.
//! - A failed write or sync is final: everybody who waits hears of it, nothing more is accepted,
//!   and what was taken can still be read. What the log of a page file has is not lost by it.
//! - The log of a page file is bounded, and a full disk is told before anything is taken.
//!
//! # Cost
//! | | |
//! |---|---|
//! | a write into memory | one copy, and 64 bytes; nothing where it replaces what is still there |
//! | a round | a sort, then one request for each run of neighbours; a read first for each run of units that are written in part |
//! | a barrier | a round, and one sync a file |
//! | a page file's write | its bytes in the log, a share of one sync; a share of a request later |
//!
//! A round begins at the lowest offset and ends at the highest, and the next one begins at the
//! lowest again: one long way back, which costs a spinning disk no more than two requests or
//! three, for a sweep in which all ways are short. Downward, neighbours would come by in the
//! wrong order. Within a round units are first read, a window at a time, and then written; a disk
//! that spins is synced before the next window is read, lest its write cache sends the head back.
//! By the model of such a disk (`examples/spinning.rs`) that alone makes rounds of far
//! records nearly twice as fast.
//!
//! A gap between two requests is read and written back where its bytes take less time than the
//! requests that saves: [`plan::Costs::fills`] has the rule, and its numbers.
//!
//! Whole units go past the page cache, so that order, size and number of the requests are those of
//! the plan and no second copy stays in memory; the end of a file goes through it. Files are
//! synced every [`Options::sync_bytes`], long before the kernel's limits on unwritten pages make
//! writers wait.
//!
//! # What it is not
//! Not a cache: what was written is forgotten. Not a file system's equal: files are there before,
//! and nobody else writes to them meanwhile. Not a transaction over several files. A page file has
//! no format: it does not know what a page is.
//!
//! # Sources
//! Keys refer to `docs/sources.md`: \[Coffman72\] sweeps in one direction, \[ONeil96\] gather, sort
//! and merge in memory, \[Mohan92\] the log before the page, \[Rebello20\] what a failed sync means.

mod batch;
mod carry;
mod error;
mod lanes;
mod options;
mod order;
mod overlap;
mod page_file;
pub mod plan;
mod round;
mod state;
mod stats;
mod target;
mod writer;

pub use error::{Error, Result};
pub use options::{Options, Role, WRITE_BYTES_MAX};
pub use page_file::{Leftover, Opened, PageFile, PageFileOptions, Patch};
pub use stats::Stats;
pub use writer::{FileId, SortedWriter};
