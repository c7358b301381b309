//! Every file below some paths, found and read in the order the disk likes best.
//!
//! # What it is
//! - [`walk`] finds the files below some roots and remembers them in a [`Tree`].
//! - [`read`] reads pieces of them, or all, and hands the bytes to a [`Consumer`].
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

pub mod digest;
mod error;
mod open;
mod read;
mod status;
mod tree;
mod walk;

pub use error::Error;
pub use read::{
    Cache, Consumer, DeviceRead, Finished, Kind, Opened, Order, ReadOptions, ReadStats, Want, read,
};
pub use tree::{DirId, FileId, Meta, Tree};
pub use walk::{Accept, Skipped, THREADS_WAITING_MAX, WalkEvents, WalkOptions, walk};
