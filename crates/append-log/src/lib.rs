//! A checksummed append log with group commit.
//!
//! # What it is
//! Records of any bytes, appended by many threads, durable when acknowledged, read back by their
//! place with one request. The log lives in a directory of its own, in segment files that are
//! filled with zeros before they are used, so that a commit is one write in place and one
//! `fdatasync`.
//!
//! # Example
//! ```
//! use std::sync::Arc;
//! use haul_append_log::{Log, Options, Position, Room};
//! use haul_disk::OsDisk;
//!
//! # fn main() -> haul_append_log::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let options = Options { segment_bytes: 1 << 20, reserve_bytes: 4096, ..Options::default() };
//! let disk = Arc::new(OsDisk::open(dir.path())?);
//! let mut seen = |at: Position, payload: &[u8]| println!("{}: {payload:?}", at.lsn);
//! let (log, _recovered) = Log::open(disk, options, &mut seen)?;
//!
//! let at = log.append(&[b"hello, ", b"disk"], Room::Ordinary)?.wait()?;
//! assert_eq!(log.read(at)?.payload(), b"hello, disk");
//! log.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//! - When [`Ticket::wait`] returns, the record and all before it survive a power cut.
//! - After a crash every acknowledged record is delivered; of the others a prefix may be.
//! - Bytes that fail their checksum are never delivered. A torn tail is cut; damage before it is
//!   reported with file and offset.
//! - A failed write or sync is final: every waiter gets the error, and so does every later append.
//! - What an earlier use of a file left in it is never taken for a record.
//!
//! # Cost
//! | | requests |
//! |---|---|
//! | a batch, however many records and threads | one write of whole pages, one `fdatasync` |
//! | a record read by its place | one read |
//! | a new segment | its length in zeros, two syncs and one of the directory, in the background |
//! | opening | each segment synced and read once, unless the owner knows it; one directory sync |
//!
//! # What it is not
//! It has no keys, no transactions over several records, and no compression.
//!
//! # Sources
//! Keys refer to `docs/sources.md`: \[Weil15\] really filled segments, \[Pebble4331\] the synced
//! watermark, \[Rebello20\] what a failed sync means.

mod append;
mod batch;
mod chain;
mod commit;
mod deliver;
mod error;
mod format;
mod gather;
mod log;
mod lsn;
mod names;
mod options;
mod pool;
mod prepare;
mod reader;
mod recover;
mod replay;
mod scan;
mod segment;
mod segment_reader;
mod stats;
mod ticket;
mod truncate;
mod ways;
mod writer;

pub use append::Room;
pub use error::{Error, Result};
pub use log::{Log, Record};
pub use lsn::{Lsn, Position};
pub use names::segment as segment_name;
pub use options::{OnDamage, Options};
pub use reader::Reader;
pub use replay::{Damage, Recovered, Replay, SegmentInfo};
pub use stats::{SYNC_BUCKETS, Stats};
pub use ticket::Ticket;
pub use ways::{SyncMethod, Ways};
