//! Counts the pages of files in the page cache, loads files into it and evicts them.
//!
//! # What it is
//! - [`Files`] lists the regular files at or below the given paths, each once.
//! - [`count_pages`] counts the pages of a file, and how many of these pages are in the page cache.
//!   [`PageCounts`] can be summed over files.
//! - [`Warmed::run`] loads files into the page cache, in the order of their position on disk.
//! - [`Evicted::run`] evicts files from the page cache, and counts the pages that stayed, by
//!   reason.
//!
//! # Example
//! ```
//! use haul_disk::Error;
//! use haul_page_cache::{Evicted, Files, FilesEvents};
//! use std::path::Path;
//!
//! struct Log;
//!
//! impl FilesEvents for Log {
//!     fn failed(&self, error: haul_bulk_read::Error) {
//!         eprintln!("{error}");
//!     }
//!     fn not_a_file(&self, path: &Path) {
//!         eprintln!("{} is not a file", path.display());
//!     }
//! }
//!
//! # fn main() -> std::io::Result<()> {
//! # let dir = tempfile::tempdir()?;
//! # std::fs::write(dir.path().join("a"), [7; 10_000])?;
//! let paths = [dir.path().to_owned()];
//! let files = Files::find(&paths, false, &Log);
//! let evicted = Evicted::run(&files, true, |error: &Error| eprintln!("{error}"));
//! assert_eq!((evicted.before.files, evicted.before.bytes), (1, 10_000));
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//! - The content of a file never changes. The access time of a file does not change either if the
//!   process owns the file (`O_NOATIME`).
//! - A file that cannot be opened is reported, and processing continues with the next file.
//! - If a FIFO has replaced a listed file, opening the FIFO does not block. If a symbolic link has
//!   replaced a file found below a given path, the link is not followed.
//! - If the kernel does not report the residency of a file to this user, the pages of the file
//!   count as unknown.
//!
//! # Cost
//! Counting costs an `openat`, two `fstat` and a `cachestat` per file. Loading costs, per 128 KiB,
//! a `posix_fadvise` that starts the readahead and a `pread` of one byte that waits for its
//! completion. A thread has up to 16 MiB in flight.
//!
//! # What it is not
//! The crate does not lock pages in memory: the kernel may evict them at any time.
//!
//! # Sources
//! Keys refer to `docs/sources.md`: \[Vmtouch\].

mod counts;
mod devices;
mod events;
mod evict;
mod files;
mod plan;
mod readahead;
mod warm;

pub use counts::{PageCounts, page_bytes};
pub use events::WarmEvents;
pub use evict::{Evicted, Remaining};
pub use files::{Files, FilesEvents, FoundFile, count_pages, open_quietly};
pub use warm::{WarmOptions, Warmed};
