//! A checksummed append log with group commit.
//!
//! # What it is
//! Records of any bytes, appended by many threads or futures, durable when acknowledged, read back
//! by their place with one request or in order by any number of readers, also while they are
//! written. The log lives in a directory of its own, in segment files whose blocks were all
//! written before: filled with zeros in the background, or used by the log before. So a commit is
//! one write in place and one sync, and no journal has anything to say about it.
//!
//! # Example
//! ```
//! use std::sync::Arc;
//! use haul_append_log::{Log, Lsn, Options, Position, Room};
//! use haul_disk::OsDisk;
//!
//! # fn main() -> haul_append_log::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let options = Options { segment_bytes: 1 << 20, reserve_bytes: 4096, ..Options::default() };
//! let disk = Arc::new(OsDisk::open(dir.path())?);
//! let mut seen = |at: Position, payload: &[u8]| println!("{}: {payload:?}", at.lsn);
//! let (log, _recovered) = Log::open(disk, options, &mut seen)?;
//! println!("{}", log.ways()); // how it writes on this storage, and why
//!
//! let at = log.append(&[b"hello, ", b"disk"], Room::Ordinary)?.wait()?; // or .await
//! assert_eq!(log.read(at)?.payload(), b"hello, disk");
//!
//! let mut reader = log.reader(Lsn::default());
//! assert_eq!(reader.read_next()?.unwrap().1, b"hello, disk");
//! assert!(reader.read_next()?.is_none(), "nothing more for now");
//! log.close()?;
//! # Ok(())
//! # }
//! ```
//! `examples/` has a small database on it, futures that wait for records, and a reader that
//! follows a writer.
//!
//! # Promises
//! What each call leaves behind it:
//!
//! | call | killed process | crash, power cut |
//! |---|---|---|
//! | [`Log::append`] | perhaps | perhaps |
//! | [`Ticket::wait`], the ticket awaited | the record and all before it | the same |
//! | [`Log::remove_segment`], [`Log::truncate_front`] | gone | gone |
//! | [`Log::truncate_back`] | gone, and no LSN of them is given again | the same |
//! | a record that a [`Reader`] delivered | it stays | it stays |
//!
//! - After a crash every acknowledged record is delivered; of the others a prefix may be.
//! - Bytes that fail their checksum are never delivered. A torn tail is cut; damage before it is
//!   reported with file and offset.
//! - A failed write or sync is final: every waiter gets the error, and so does every later append.
//!   Opened again, the log goes on in another segment.
//! - What an earlier use of a file left in it is never taken for a record, nor is a payload that
//!   was made to look like one.
//! - On a full disk records of [`Room::Reserve`] still succeed, in a segment kept for them.
//!
//! # Cost
//! | | requests |
//! |---|---|
//! | a batch, however many records and threads | one write of whole pages, one sync |
//! | a record read by its place | one read |
//! | going on to the next segment | nothing: the seal goes along with the last record |
//! | a new segment, in the background | its length in zeros in step with the log, two syncs and one of the directory |
//! | a recycled one, in the background | two pages, one sync and one of the directory |
//! | opening | each segment synced and read once past the page cache, unless the owner knows it; a few syncs |
//!
//! A writer alone commits in its own thread. Many share a batch: whoever commits next waits for
//! those who just left, for half a sync at most, and not where that was of no use before. Memory
//! is the two buffers of [`Options::buffer_bytes`]; who appends while both are full waits.
//!
//! # What it is not
//! It has no keys, no transactions over several records, and no compression. It holds a
//! descriptor or two for each segment.
//!
//! # Sources
//! Keys refer to `docs/sources.md`: \[Weil15\] segments whose blocks were written before,
//! \[Pebble4331\] the synced watermark, \[Rebello20\] what a failed sync means, \[PgCommitDelay\]
//! waiting half a sync for others.

mod append;
mod error;
mod format;
mod log;
mod lsn;
mod names;
mod options;
mod read;
mod recover;
mod segments;
mod stats;
mod truncate;
mod ways;

pub use append::Room;
pub use append::ticket::Ticket;
pub use error::{Error, Result};
pub use log::{Log, Record};
pub use lsn::{Lsn, Position};
pub use names::segment as segment_name;
pub use options::{OnDamage, Options};
pub use read::reader::Reader;
pub use recover::replay::{Damage, Recovered, Replay, SegmentInfo};
pub use stats::{SYNC_BUCKETS, Stats};
pub use ways::{SyncMethod, Ways};
