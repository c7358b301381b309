//! Every file below some paths, found and read in the order the disk likes best.
//!
//! # What it is
//! - [`walk`] finds the files below some roots, with all cores or more, and remembers them in a
//!   [`Tree`]: 48 bytes and a name for each.
//! - [`read`] reads pieces of them, or all, and hands the bytes to a [`Consumer`]. What is in memory
//!   is read at once; what is not, with many requests under way (io_uring), or on a device with an
//!   arm in one sweep, in the order it lies there.
//! - [`digest`] has the hashes one usually wants of them.
//!
//! # Example
//! ```
//! use std::ops::ControlFlow;
//! use std::sync::atomic::{AtomicU64, Ordering};
//!
//! use haul_bulk_read::{
//!     Consumer, Error, Finished, Opened, ReadOptions, WalkEvents, WalkOptions, Want, read, walk,
//! };
//!
//! /// Counts lines, and tells what went wrong.
//! #[derive(Default)]
//! struct Lines(AtomicU64);
//!
//! impl Consumer for Lines {
//!     type State = u64;
//!     fn begin(&self, _want: usize, _opened: &Opened) -> u64 {
//!         0
//!     }
//!     fn piece(&self, lines: &mut u64, _want: usize, bytes: &[u8]) -> ControlFlow<()> {
//!         *lines += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
//!         ControlFlow::Continue(())
//!     }
//!     fn end(&self, lines: Option<u64>, _want: usize, outcome: Result<Finished, Error>) {
//!         match outcome {
//!             Ok(_) => drop(self.0.fetch_add(lines.unwrap_or(0), Ordering::Relaxed)),
//!             Err(error) => eprintln!("{error}"),
//!         }
//!     }
//! }
//!
//! impl WalkEvents for Lines {
//!     fn failed(&self, error: Error) {
//!         eprintln!("{error}");
//!     }
//! }
//!
//! # fn main() -> std::io::Result<()> {
//! # let dir = tempfile::tempdir()?;
//! # std::fs::write(dir.path().join("a"), "one\ntwo\n")?;
//! # std::fs::write(dir.path().join("b"), "three\n")?;
//! # let root = dir.path().to_path_buf();
//! let lines = Lines::default();
//! let tree = walk(&[root], &WalkOptions::default(), &lines);
//! let wants: Vec<_> = tree.ids().map(Want::whole).collect();
//! let stats = read(&tree, &wants, &ReadOptions::default(), &lines);
//! assert_eq!((stats.wants, stats.bytes, lines.0.into_inner()), (2, 14, 3));
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//! - Nothing stops a walk or a run: what fails is told, by its path, and the rest goes on.
//! - Every want ends exactly once. Its pieces come in order, never two at a time, and are together
//!   what the file had when it was opened: a file that shrinks fails ([`Error::Shrunk`]), one that
//!   grows is read to its old end, and that is told ([`Finished::grew`]).
//! - Only regular files are opened for reading. Pipes, sockets and devices are told as skipped; what
//!   takes the place of a file later is an error, and is never waited for.
//! - Every directory is walked once, also where links or mounts lead to it again, and every root.
//! - Names are bytes, paths of any length.
//! - The memory for reading is bounded: [`ReadOptions::memory_bytes_max`].
//! - With [`Cache::Spare`] the page cache is left as it was.
//!
//! What is special: a file of `/proc` and its like has no length, and is read to its end. Holes
//! are read as zeros, which costs the device nothing.
//!
//! # Cost
//! A file costs one `statx` to be found. A small one that is in memory costs four calls to be read:
//! it is opened relative to its directory, asked for its status, read into a buffer that stays in
//! the processor's cache, and closed. One that is not costs a part of a call of the ring more. On a
//! device that may rotate, and was not measured yet, a call more asks what is in memory; what is not
//! and is read later, in the order it lies, is opened again then: there may be millions of such.
//!
//! # Which order
//! The kernel's flag is believed when it says that nothing rotates. Virtual disks often say that
//! they rotate, so then reads of 4 KiB past the page cache, on files that are not in memory,
//! decide: two or three here and there; where they take as long as an arm would, the last once more,
//! which a drive has in its memory; and where that takes long too, eight at once.
//! [`ReadStats::devices`] tells what came of it.
//!
//! A device with an arm is read in one sweep, and 128 reads are handed over before anything is
//! waited for, so that the kernel makes one request of what lies together: of a tree that was just
//! unpacked, one for some twenty files.
//!
//! # What it is not
//! No cache of its own, no opinion on what the bytes are for. It follows the kernel's readahead and
//! does not read devices past the file system.
//!
//! # Sources
//! Keys refer to `docs/sources.md`: \[Lunde09\] reading in the order of the disk, \[IoUring\] the
//! ring, \[DontCache25\] reads that leave the page cache alone, \[Blake3\] a hash that is a tree.

pub mod digest;
mod error;
mod open;
mod read;
mod status;
mod tree;
mod walk;

pub use error::Error;
pub use read::{
    Cache, Consumer, Decided, DeviceRead, Finished, Kind, Opened, Order, ReadOptions, ReadStats,
    Want, read,
};
pub use tree::{DirId, FileId, Meta, Tree};
pub use walk::{Accept, Skipped, THREADS_WAITING_MAX, WalkEvents, WalkOptions, walk};
