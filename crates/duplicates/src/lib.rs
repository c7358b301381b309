//! Files of equal content: found with little reading, dealt with safely.
//!
//! # What it is
//! - [`find`] walks some roots and gives the groups of files that hold the same bytes, or what a
//!   [`Transform`] makes of them: duplicates, or what is there too seldom.
//! - [`report`] writes what was found, in the formats fclones has, and reads it again.
//! - [`keep`] decides which files of a group stay.
//! - [`act`] removes, links, moves the others, or lets them share blocks, each compared once more
//!   at the moment it goes.
//! - [`same_dirs`] finds directories that hold the same.
//!
//! # Example
//! ```
//! use haul_bulk_read::WalkOptions;
//! use haul_duplicates::act::{Action, Actor, Left, Options as ActOptions};
//! use haul_duplicates::keep::Rules;
//! use haul_duplicates::{Error, Options, find};
//! use std::path::Path;
//!
//! struct Quiet;
//!
//! impl haul_duplicates::Events for Quiet {
//!     fn failed(&self, error: Error) {
//!         eprintln!("{error}");
//!     }
//! }
//!
//! impl haul_duplicates::act::Events for Quiet {
//!     fn done(&mut self, keep: &Path, drop: &Path, _bytes: u64) {
//!         println!("{} went, {} stays", drop.display(), keep.display());
//!     }
//!     fn left(&mut self, path: &Path, why: &Left) {
//!         eprintln!("{} is left: {why}", path.display());
//!     }
//! }
//!
//! # fn main() -> std::io::Result<()> {
//! # let dir = tempfile::tempdir()?;
//! # let dir = dir.path().to_path_buf();
//! # for (name, text) in [("a", "hello"), ("b", "hello"), ("c", "other")] {
//! #     std::fs::write(dir.join(name), text)?;
//! # }
//! let found = find(&[dir.clone()], &WalkOptions::default(), &Options::default(), &Quiet);
//! let groups: Vec<_> = found.groups().collect();
//! assert_eq!((groups.len(), groups[0].members.len()), (1, 2));
//!
//! let rules = Rules::default(); // the first of each group stays
//! let action = Action::Remove;
//! let mut actor =
//!     Actor::new(ActOptions { action, rules, lock: true, dry_run: false, transform: None });
//! groups.iter().for_each(|group| actor.act(group, &mut Quiet));
//! assert!(dir.join("a").exists() && !dir.join("b").exists());
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//! - Files of a group had the same digest over all of their bytes, or lay in the same blocks of the
//!   disk. What changed while it was read is told, and in no group.
//! - No action takes the last copy of a content that was there at the moment of the act, whatever
//!   other processes do to the files meanwhile: see [`act::Actor::act`] for what that rests on.
//! - A name leads to a whole file at any time, except one that is removed; what is kept is on the
//!   medium before another copy goes.
//! - Names of any bytes come through every format but plain `fdupes` lines, where they are escaped.
//! - A kept digest is used only for a file of the same device, inode, length and times; a damaged
//!   file of digests is told and made anew.
//!
//! # Cost
//! A file that is alone in its length is not opened. Up to 64 KiB it is opened and read once; of a
//! longer one some samples of 4 KiB come first, and then pieces that grow, until it is unlike all
//! others. Copies in the same blocks are read once together. In memory a file costs its name and
//! some 50 bytes, and as many again while it is read.
//!
//! # What it is not
//! It does not look for files that are merely alike, nor for equal parts of files. It keeps no list
//! of what was done: whoever wants one listens.
//!
//! # Sources
//! Keys refer to `docs/sources.md`: \[fclones\] what users are used to, \[rmlint\] traps, and
//! reading on in growing pieces.

pub mod act;
mod dirs;
mod error;
mod escape;
pub mod keep;
mod pattern;
mod replicas;
pub mod report;
mod search;
pub mod shell;
mod transform;

pub use dirs::{DirGroup, dir_stats, same_dirs};
pub use error::{Error, Result};
pub use pattern::{Pattern, Syntax};
pub use search::{Events, Found, Options, Phase, Replication, find};
pub use transform::{Transform, TransformOptions};
