//! Finds files with equal content, with few reads, and deduplicates them safely.
//!
//! # What it is
//! - [`find`] walks the given roots and returns groups of files with equal content, or with equal
//!   output of a [`Transform`]. It finds duplicates, or contents with too few replicas. A replica
//!   is an independent copy: several hard links of an inode count as one replica, unless
//!   [`Options::match_links`] is set.
//! - [`report`] writes and reads groups in the formats of fclones, another duplicate finder.
//! - [`keep`] selects the files of a group to keep.
//! - [`act`] removes, links, moves or deduplicates (reflinks) the redundant files, each after a
//!   final byte-by-byte comparison with a kept file.
//! - [`blocks`] shares equal blocks of files that may differ in other blocks.
//! - [`duplicate_dirs`] finds directories with equal content.
//!
//! # Example
//! ```
//! use haul_bulk_read::WalkOptions;
//! use haul_duplicates::act::{Action, Executor, Options as ActOptions, SkipReason};
//! use haul_duplicates::{Error, Options, find};
//! use std::path::Path;
//!
//! struct Log;
//!
//! impl haul_duplicates::Events for Log {
//!     fn failed(&self, error: Error) {
//!         eprintln!("{error}");
//!     }
//! }
//!
//! impl haul_duplicates::act::Events for Log {
//!     fn done(&mut self, keep: &Path, drop: &Path, _bytes: u64) {
//!         println!("removed {}, kept {}", drop.display(), keep.display());
//!     }
//!     fn skipped(&mut self, path: &Path, reason: &SkipReason) {
//!         eprintln!("skipped {}: {reason}", path.display());
//!     }
//! }
//!
//! # fn main() -> std::io::Result<()> {
//! # let dir = tempfile::tempdir()?;
//! # let dir = dir.path().to_path_buf();
//! # for (name, text) in [("a", "hello"), ("b", "hello"), ("c", "other")] {
//! #     std::fs::write(dir.join(name), text)?;
//! # }
//! let found = find(&[dir.clone()], &WalkOptions::default(), &Options::default(), &Log);
//! let groups: Vec<_> = found.groups().collect();
//! assert_eq!((groups.len(), groups[0].members.len()), (1, 2));
//!
//! let mut executor = Executor::new(ActOptions::new(Action::Remove));
//! groups.iter().for_each(|group| executor.process(group, &mut Log));
//! assert!(dir.join("a").exists() && !dir.join("b").exists());
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//! - The files of a group had the same digest over all of their bytes, or shared the same blocks on
//!   disk (with [`Options::skip_content`]: the same digest over samples). A file that changes while
//!   it is read is reported and is in no group.
//! - An action removes a file only while another copy of its content exists, even if other
//!   processes modify the files concurrently; [`act::Executor::process`] describes the mechanism.
//! - At any time a name refers to a complete file, unless the action removes the name. The kept
//!   file is durable before another copy is removed.
//! - Reports preserve file names that are not UTF-8. The format `fdupes0` writes names unchanged;
//!   all other formats escape control characters and invalid UTF-8 reversibly.
//! - A cached digest is used only for a file with the same device, inode, length and times. A
//!   corrupt cache file is reported and rebuilt; one of another hash function is not used.
//!
//! # Cost
//! A file with a unique length is not opened. On a solid-state device, a file of up to 64 KiB is
//! opened and read once. Longer files are compared by a few samples of 4 KiB, then by parts of
//! increasing length; a file is read no further once it differs from all others. Rotational devices
//! have larger limits, because seeks are expensive. Of several reflinked copies (files that share
//! all blocks), only one is read. A file needs about 50 bytes of memory plus its name, and about 50
//! bytes more if other files have the same length.
//!
//! # What it is not
//! The crate finds no similar files, and equal parts of files only to share them. It keeps no log of its actions;
//! [`act::Events`] lets the caller write one.
//!
//! # Sources
//! Keys refer to `docs/sources.md`: \[fclones\] on the command line and the formats, \[rmlint\] on
//! pitfalls and on reading in parts of increasing length.

pub mod act;
pub mod blocks;
mod dirs;
mod error;
mod escape;
mod file_systems;
pub mod keep;
mod pattern;
mod replicas;
pub mod report;
mod search;
pub mod shell;
mod transform;

pub use dirs::{DirGroup, dir_stats, duplicate_dirs};
pub use error::{Error, Result};
pub use pattern::{Filter, Pattern, Syntax};
pub use report::Replication;
pub use search::{Events, Options, Phase, SearchResult, find};
pub use transform::{Transform, TransformOptions};
