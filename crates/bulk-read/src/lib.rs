//! Fast directory walks and bulk reads of the files found, in the order that suits each device.
//!
//! # What it is
//! - [`walk`] lists the files below the given roots with several threads and records them in a
//!   [`Tree`]: 48 bytes and a name per file.
//! - [`read`] reads whole files or ranges of them and passes the bytes to a [`Consumer`]. It reads
//!   data in the page cache synchronously and other data asynchronously (io_uring) at a high queue
//!   depth. On a rotational device it reads the uncached files in one sweep, in physical order.
//! - [`digest`] offers common hash functions for the bytes read.
//! - [`DigestCache`] stores digests of unchanged files for later runs.
//!
//! # Example
//! ```
//! use std::ops::ControlFlow;
//! use std::sync::atomic::{AtomicU64, Ordering};
//!
//! use haul_bulk_read::{
//!     Consumer, Error, FileStatus, ReadOptions, ReadRequest, ReadSummary, WalkEvents, WalkOptions,
//!     read, walk,
//! };
//!
//! /// Counts lines and prints errors.
//! #[derive(Default)]
//! struct Lines(AtomicU64);
//!
//! impl Consumer for Lines {
//!     type State = u64;
//!     fn begin(&self, _request: usize, _file: &FileStatus) -> u64 {
//!         0
//!     }
//!     fn piece(&self, lines: &mut u64, _request: usize, bytes: &[u8]) -> ControlFlow<()> {
//!         *lines += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
//!         ControlFlow::Continue(())
//!     }
//!     fn end(&self, lines: Option<u64>, _request: usize, outcome: Result<ReadSummary, Error>) {
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
//! let requests: Vec<_> = tree.ids().map(ReadRequest::whole).collect();
//! let stats = read(&tree, &requests, &ReadOptions::default(), &lines);
//! assert_eq!((stats.requests, stats.bytes, lines.0.into_inner()), (2, 14, 3));
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//! - No error stops a walk or a run: each error is reported with its path, and all other files are
//!   still processed.
//! - Every request ends exactly once. The pieces of a request arrive in order, never two
//!   concurrently, and end at the length that the file had when it was opened: if the file shrinks
//!   meanwhile, the request fails ([`Error::Shrunk`]); if it grows, the request succeeds and is
//!   flagged ([`ReadSummary::grew`]).
//! - Only regular files are opened for reading. The walk reports pipes, sockets and devices as
//!   skipped; if one of them replaces a listed file, the read of that file fails without blocking.
//! - Every directory and every root is walked once, even if links or mounts lead to it repeatedly.
//! - Names are arbitrary bytes; paths may have any length.
//! - The memory for reading is bounded: [`ReadOptions::memory_bytes_max`].
//! - With [`CacheMode::Preserve`], pages that were not cached before a read are not cached after
//!   it.
//!
//! Special cases: files of `/proc` and similar file systems report no meaningful length, so they
//! are read to EOF. Holes of at least 1 MiB are not read: [`Consumer::zeros`] receives their
//! length, or [`Consumer::piece`] receives zeros. The cost of a hole is then that of hashing zeros;
//! a cryptographic hash of 1 TiB takes minutes whether it is read or not.
//!
//! # Cost
//! Finding a file costs one `statx`. Reading a small cached file costs four system calls: `openat`
//! relative to its directory, `statx`, `preadv2` into a buffer that fits the CPU cache, and
//! `close`. Reading an uncached file adds an io_uring call, which is shared with other reads. If
//! the kernel reports the device as rotational and no measurement has found it to be solid-state,
//! one more call per file queries page-cache residency. The uncached files of such a device are
//! closed, deferred, and opened again for the sweep: millions of files may be deferred, too many to
//! be kept open.
//!
//! # Read order
//! The kernel's `rotational` flag is trusted if it is 0. Virtual disks often report 1 wrongly, so
//! if the flag is 1, a few direct reads of 4 KiB decide. First come two or three single reads at
//! different places. If they are as slow as a seek, the last read is repeated: a rotational drive
//! answers the repetition fast, from its own cache. If up to 16 repetitions are slow, too, eight
//! concurrent reads follow, which only a solid-state device serves in the time of two, and then
//! further single reads. The minimum of several latencies counts, without the time for which the
//! thread waited for a CPU, because a busy machine only delays reads. In doubt, the flag is right.
//! [`ReadStats::devices`] contains the result; [`device_kind`] detects it before files are read.
//!
//! A rotational device is read in one sweep with up to 16 reads in flight, of which four are
//! submitted together, so that the kernel merges adjacent reads: in a freshly unpacked tree one
//! device request covers about ten files. With more reads in flight, the drive leaves some behind
//! and has to return to them: on the model of `docs/spinning-disk.md`, 128 reads take 1.27 times
//! the bound of a sweep over 20,000 scattered files, and 16 take 1.18 times.
//!
//! A walk takes the directories in ascending order of their inode numbers, beginning with the one
//! after the last, like an elevator. So all threads are in the same part of a rotational device.
//! It starts with one thread, which is as fast as several if the tree is small or cached.
//!
//! # What it is not
//! The crate does not cache or interpret the bytes. It relies on the kernel's readahead and always
//! reads through the file system.
//!
//! # Sources
//! Keys refer to `docs/sources.md`: \[Lunde09\] on reading in disk order, \[IoUring\] on io_uring,
//! \[DontCache25\] on reads that do not fill the page cache, \[Blake3\] on hashing as a tree.

mod cache;
pub mod digest;
mod error;
mod open;
mod path;
mod read;
mod status;
mod tree;
mod walk;

pub use cache::{DigestCache, DigestForm};
pub use error::Error;
pub use open::{open_directory, open_file};
pub use read::{
    CacheMode, Consumer, DeviceKind, DeviceStats, FileStatus, KindSource, Order, ReadOptions,
    ReadRequest, ReadStats, ReadSummary, device_kind, read,
};
pub use status::exists;
pub use tree::{DirId, FileId, Meta, Tree};
pub use walk::{PathFilter, SkipReason, THREADS_WAITING_MAX, WalkEvents, WalkOptions, walk};
