//! Writes text lines through buffers in memory into rotated log files.
//!
//! # What it is
//! A log is a directory with the file `current`, to which lines are appended, and closed files,
//! which are named by the time they were closed: `20261121T072314.500000Z.log`. Callers copy whole
//! lines into a buffer in memory. When a buffer is full or its lines have waited too long, a
//! background thread writes the buffer with one large write. This thread also syncs, closes,
//! renames and removes files. With [`Options::compress`], another thread compresses closed files.
//!
//! [`copy_lines`] reads the lines of a log back, all or those of a [`TimeRange`], compressed or not.
//! The crate also contains [`Stamper`], which prefixes lines with timestamps, and [`LineQueue`],
//! which writes lines to a stream without blocking the threads that log them.
//!
//! # Example
//! ```
//! use haul_line_log::{LineLog, Options, Environment};
//! use std::io::Write;
//! use std::sync::Arc;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let dir = dir.path().join("log");
//! let log = Arc::new(LineLog::open(&dir, Options::default(), Environment::default())?);
//! log.append(b"a line\nand one more\n")?; //        in memory
//! writeln!(&*log, "{} is one append, too", 42)?;
//! log.write_out()?; //                              written to the kernel
//! log.sync()?; //                                   durable
//! log.close()?;
//! assert_eq!(std::fs::read(dir.join("current"))?.iter().filter(|b| **b == b'\n').count(), 3);
//! # Ok(())
//! # }
//! ```
//! `Arc<LineLog>` is a `MakeWriter` of `tracing_subscriber`: see `examples/tracing.rs`.
//!
//! # Promises
//! - The bytes of one append are written contiguously and in order, so lines of different threads
//!   never interleave.
//! - A line of one append is completely in one file, unless it is longer than a file may be.
//! - No line is dropped, except with [`WhenFull::DropNewest`]. Then the log contains a note with
//!   the number of dropped lines.
//! - A failed write is retried, and its lines stay in memory until it succeeds or the log is
//!   closed. Callers that wait for the write receive the error.
//! - A failed sync is final for its file: nothing more is written to the file, and it is closed
//!   with the suffix `.unsynced`. The failure is reported to callers of [`LineLog::sync`] and as an
//!   [`Event`].
//! - A closed file is never written to again or overwritten, even if the clock is set back. Files
//!   are removed only according to [`Retention`] and, while the disk is full, to
//!   [`Options::full_disk_files_min`].
//! - A file is removed in favour of its compressed copy only after the copy was synced, read back,
//!   compared byte by byte and published. A crash at any moment leaves the file or the copy, and
//!   opening the log removes what is left of the other.
//! - After a crash, opening the log continues the current file. If its last line is torn, a newline
//!   is written before the next line.
//!
//! The following table states which lines survive. The latest lines are those appended within the
//! last [`Options::write_delay_max`]:
//!
//! | after return of | crash of the process | power cut |
//! |---|---|---|
//! | [`LineLog::append`], `write`, `writeln!` | no: loses the latest lines | no |
//! | [`LineLog::write_out`], `.flush()` | yes | no |
//! | [`LineLog::sync`] | yes | yes |
//! | [`LineLog::rotate`], [`LineLog::close`] | yes | yes, unless [`SyncMode::Never`] |
//!
//! # Cost
//! An append costs a lock and a copy. It allocates no memory and does not read the clock. Unless
//! appends wait for a free buffer, they make at most two system calls per buffer, to wake the
//! background thread. Each buffer costs one write; each closed file costs one sync of its bytes and
//! two of the directory. The memory is [`Options::buffers`] times [`Options::buffer_bytes`], 8 MiB
//! by default. The compression of a file costs three more syncs, of which callers wait for none.
//!
//! # What it is not
//! The log has no checksums, no index and no acknowledgement of single lines: use `haul-append-log`
//! for records that must not be lost. It selects no lines by patterns and starts no programs;
//! [`Event::Closed`] reports each closed file to a program that processes it.
//!
//! # Sources
//! Keys refer to `docs/sources.md`: \[Muduo13\] for double buffering, \[Multilog\] for the
//! directory with `current` and closed files and for retrying on a full disk, \[Rebello20\] for
//! failed syncs.

mod buffers;
mod calendar;
mod compress;
mod disk_io;
mod error;
mod files;
mod line_queue;
mod log;
mod names;
mod options;
mod read;
mod stats;
mod write;
mod writer;

pub use calendar::{
    Clock, Schedule, StampFormat, Stamper, SystemClock, Utc, parse_moment, split_stamp,
};
pub use error::{Error, Result};
pub use line_queue::LineQueue;
pub use log::{Environment, LineLog};
pub use names::CURRENT;
pub use options::{Compression, Options, Retention, SyncMode, WhenFull};
pub use read::{CopyReport, TimeRange, copy_lines, copy_lines_on};
pub use stats::{Event, Stats};
