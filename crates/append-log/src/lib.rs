//! A checksummed append log with group commit.
//!
//! # What it is
//! A log of byte records that many threads or futures append to. A record is durable once its
//! append is acknowledged. [`Log::read`] reads a record by its position with one request. Any
//! number of readers can read the records in order while other threads append.
//!
//! The log is a directory of segment files. All of a segment's blocks are allocated and written
//! before its first record: the log fills a new file with zeros in the background, or recycles a
//! removed segment's file. A commit is therefore one write in place and one sync, without a file
//! system journal commit. If batches are so large that a journal commit costs less than writing
//! their length in zeros, the log only reserves a new file's blocks.
//!
//! With [`first_segment_bytes`](Options#structfield.first_segment_bytes) the first segment is
//! short, and each further one twice as long, up to [`Options::segment_bytes`]: a log with few
//! records takes little space.
//!
//! # Example
//! ```
//! use haul_append_log::{Log, Lsn, Options, Position, SpacePriority};
//!
//! # fn main() -> haul_append_log::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let options = Options { segment_bytes: 1 << 20, reserve_bytes: 4096, ..Options::default() };
//! # let dir = dir.path().join("log");
//! let mut seen = |at: Position, payload: &[u8]| println!("{}: {payload:?}", at.lsn);
//! let (log, _recovered) = Log::open_dir(dir, options, &mut seen)?; // created if missing
//! println!("{}", log.strategy()); // the write strategy on this storage, with reasons
//!
//! let at = log.append(&[b"hello, ", b"disk"], SpacePriority::Ordinary)?.wait()?; // or .await
//! assert_eq!(log.read(at)?.payload(), b"hello, disk");
//!
//! let mut reader = log.reader(Lsn::default());
//! assert_eq!(reader.read_next()?.unwrap().1, b"hello, disk");
//! assert!(reader.read_next()?.is_none(), "nothing more for now");
//! log.close()?;
//! # Ok(())
//! # }
//! ```
//! [`Log::open_read_only`] reads a log that another process may be writing, and changes no file.
//! [`ReadOnlyLog::copy_to`] copies it.
//!
//! `examples/` contains a small database that stores its records in the log, futures that wait for
//! their records, and a reader that follows a writer.
//!
//! # Promises
//! Durability after each call:
//!
//! | call | killed process | crash, power cut |
//! |---|---|---|
//! | [`Log::append`] | not guaranteed | not guaranteed |
//! | [`Ticket::wait`], awaiting a ticket | the record and all before it survive | the record and all before it survive |
//! | [`Log::remove_segment`], [`Log::truncate_front`] | the records stay removed | the records stay removed |
//! | [`Log::truncate_back`] | the records stay removed, and their LSNs are never reused | the records stay removed, and their LSNs are never reused |
//! | a record delivered by a [`Reader`] | survives | survives |
//! | a record delivered by [`Log::open_read_only`] | survives | not guaranteed |
//!
//! - After a crash, opening the log delivers every acknowledged record. It may also deliver
//!   unacknowledged records, if no earlier record is missing.
//! - A record whose checksum does not match is never delivered as valid. Opening a log truncates a
//!   torn tail, the rest of an interrupted batch, and reports damage before this tail with file and
//!   offset. Damage to the last batch can be mistaken for a torn tail until the log has written a
//!   watermark, a record that proves that the batch was durable ([`Options::idle_watermark_ms`]).
//! - A failed write or sync is final: every waiting caller and every later append gets the error.
//!   The log must then be closed and opened again; it continues in another segment.
//! - If any page of 4 KiB is lost, only the records in this page are lost.
//! - A segment whose file is missing between others is reported as damage, if segments are removed
//!   in order ([`Options::removes_in_order`]).
//! - Stale bytes in a recycled file are never accepted as a record, and neither is a payload that
//!   was crafted to look like a record.
//! - Only one [`Log`] can have a directory open: a second attempt to open it for writing fails, in
//!   the same process or another one.
//! - On a full disk, appends with [`SpacePriority::Reserve`] (such as deletions) still succeed
//!   until the segment reserved for them is full. With [`Options::compaction_segments`], appends
//!   with [`SpacePriority::Compaction`] always succeed, provided that the caller then removes the
//!   segment from which it copied the records. The log uses that segment's file to refill the
//!   reserve before it uses the file for other records.
//!
//! # Cost
//! | | requests |
//! |---|---|
//! | a batch, for any number of records and threads | one write of whole pages, one sync |
//! | a lone record of [`payload_bytes_in_pages`] | so many pages; a payload of 4,096 bytes takes two pages, because its header needs space, too |
//! | a watermark, once per idle period | one write of one or two pages, one sync |
//! | a read by position | one read |
//! | a read by LSN ([`Log::read_hinted`]) | one read, two if the record is longer than the hint |
//! | reading many records by LSN ([`Log::read_batch`]) | one read for each group of records that are at most 16 KiB apart, up to 256 KiB; 64 reads in flight |
//! | reading in order ([`Log::reader`]) | one read for each 256 KiB, and one more for a record that crosses their border |
//! | switching to the next segment | nothing: the seal is written along with the last record |
//! | a new segment, in the background | zeros for its whole length, written while the current segment fills; two syncs and one sync of the directory |
//! | a new segment after one with large batches, in the background | a reservation, one sync and one sync of the directory; later a journal commit for each batch |
//! | a recycled segment, in the background | three pages written, one sync and one sync of the directory |
//! | opening | each segment synced and read once bypassing the page cache, except for the parts whose records the caller knows; a few syncs |
//!
//! [`Log::read_bytes`] returns a segment's verified bytes, and [`RebuiltSegment`] rebuilds a
//! segment file from them, for example on another machine.
//!
//! The log calls futures' wakers without holding a lock, so a waker may call the log.
//!
//! A lone writer commits in its own thread. Concurrent writers share a batch: one writer writes it,
//! or, if they are more than three, the log's commit thread. One system call wakes all of them, and
//! none then waits for a lock. The committing thread first waits until the last batch's writers
//! have appended again, for at most half the time in which a short batch is written and synced. It
//! skips most of these waits if the previous waits brought few records. The log keeps two append
//! buffers of [`Options::buffer_bytes`] in memory. An append waits while the buffer being filled
//! has no space for the record. A record longer than a buffer gets a longer one, which is freed
//! when the record is durable. Readers likewise take the memory for a long record only until they
//! have read the next one.
//!
//! # What it is not
//! The log has no keys and no transactions over several records. It keeps one or two file
//! descriptors open for each segment.
//!
//! # Sources
//! The keys in brackets refer to `docs/sources.md`: \[Weil15\] for recycled segments,
//! \[Pebble4331\] for the synced watermark, \[Rebello20\] for failed syncs, \[PgCommitDelay\] for
//! waiting half a sync for other writers.

mod append;
mod error;
mod format;
mod log;
mod lsn;
mod names;
mod options;
mod read;
mod read_only;
mod record;
mod recover;
mod replay;
mod segments;
mod stats;
mod strategy;

pub use append::ticket::Ticket;
pub use error::{Error, Result};
pub use format::{RECORD_HEADER_BYTES, SEAL_BYTES, payload_bytes_in_pages, stored_bytes};
pub use log::{BatchReader, LockedBytes, Log, PinnedRecord, Reader, SegmentBytes, Space};
pub use lsn::{Lsn, Position};
pub use names::{is_segment as is_segment_name, segment as segment_name};
pub use options::{OnDamage, Options};
pub use read_only::{ReadOnlyLog, ReadOnlyReader, ReadOnlyReport};
pub use record::{BatchRecord, Record, RecordRequest};
pub use replay::{Damage, Recovered, Replay, SegmentInfo};
pub use segments::rebuilt::RebuiltSegment;
pub use segments::reserve::SpacePriority;
pub use stats::{SYNC_BUCKETS, Stats};
pub use strategy::{SyncMethod, WriteStrategy};
