//! Text lines of a service into rotated files, as fast as memory takes them.
//!
//! # What it is
//! A directory of files: `current`, which lines are appended to, and closed ones, named by when
//! they were closed: `20261121T072314.500000Z.log`. Callers copy whole lines into a buffer; one
//! thread in the background writes full and aged buffers, each with one large write, and syncs,
//! closes, renames and removes files. Nothing of that happens on a caller's path.
//!
//! # Example
//! ```
//! use haul_line_log::{LineLog, Options, Outside};
//! use std::io::Write;
//! use std::sync::Arc;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let dir = dir.path().join("log");
//! let log = Arc::new(LineLog::open(&dir, Options::default(), Outside::default())?);
//! log.append(b"a line\nand one more\n")?; //        in memory
//! writeln!(&*log, "{} is one call, too", 42)?;
//! log.write_out()?; //                              handed to the kernel
//! log.sync()?; //                                   on the medium
//! log.close()?;
//! assert_eq!(std::fs::read(dir.join("current"))?.iter().filter(|b| **b == b'\n').count(), 3);
//! # Ok(())
//! # }
//! ```
//! `Arc<LineLog>` is a `MakeWriter` of `tracing_subscriber`: see `examples/tracing.rs`.
//!
//! # Promises
//! - What one call brings is written whole and in order; lines of several threads never mix.
//! - A line that came in one call is whole in one file, if it is not longer than a file.
//! - No line is dropped, unless that was asked for; then the log says how many, and where.
//! - A write that fails is tried again, with the lines kept in memory; whoever waits is told.
//! - A failed sync is final for its file, which is closed as `.unsynced`. It is told.
//! - No closed file is ever written to again, and none is overwritten, also when the clock is set
//!   back; only what [`Keep`] says is removed.
//! - After a crash the next run goes on; a torn last line gets its newline first.
//!
//! What survives what:
//!
//! | when it has returned | end of the process | power cut |
//! |---|---|---|
//! | [`LineLog::append`], `write`, `writeln!` | no: what came in the last [`Options::late_max`] | no |
//! | [`LineLog::write_out`], `.flush()` | yes | no |
//! | [`LineLog::sync`] | yes | yes |
//! | [`LineLog::rotate`], [`LineLog::close`] | yes | yes, unless [`SyncWhen::Never`] |
//!
//! # Cost
//! A line costs its caller a lock and a copy: no allocation, no clock, no system call, except once
//! a buffer. The files cost one write a buffer, and each closed one a sync of its bytes and two of
//! the directory. The memory is [`Options::buffers`] times [`Options::buffer_bytes`], 8 MiB, and
//! never more.
//!
//! # What it is not
//! It has no checksums, no index and no acknowledgement of single lines: for records that must
//! not be lost there is `haul-append-log`. It adds no time to a line, and compresses nothing; an
//! [`Event`] tells of each closed file, for whoever wants to.
//!
//! # Sources
//! Keys refer to `docs/sources.md`: \[Muduo13\] two buffers that change places, \[Multilog\] the
//! directory with `current` and closed files, and what to do when the disk is full; \[Rebello20\]
//! what a failed sync means.

mod buffers;
mod clock;
mod error;
mod files;
mod log;
mod names;
mod options;
mod plan;
mod stats;
mod utc;
mod write;
mod writer;

pub use clock::{Clock, SystemClock};
pub use error::{Error, Result};
pub use log::{LineLog, Outside};
pub use names::CURRENT;
pub use options::{Keep, Options, SyncWhen, WhenFull};
pub use stats::{Event, Stats};
pub use utc::Utc;
