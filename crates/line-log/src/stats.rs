//! Defines the counters and the events of a log.

use std::sync::Arc;
use std::time::Duration;

/// Counters since the log was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// The number of appends that were accepted.
    pub appends: u64,
    /// The number of bytes accepted, including notes about dropped lines.
    pub bytes: u64,
    /// The number of lines dropped because all buffers were full ([`crate::WhenFull::DropNewest`]).
    pub dropped_lines: u64,
    /// The number of bytes of the dropped lines.
    pub dropped_bytes: u64,
    /// The number of lines lost because they could not be written before the log was closed.
    pub unwritten_lines: u64,
    /// The number of times that an append waited for a free buffer.
    pub waits: u64,
    /// The number of buffers written.
    pub writes: u64,
    /// The number of bytes written to the kernel.
    pub written_bytes: u64,
    /// The total time taken to write the buffers, including rotations and retries, in microseconds.
    pub write_us_total: u64,
    /// The longest time taken to write a buffer, in microseconds.
    pub write_us_max: u64,
    /// The number of syncs of files.
    pub syncs: u64,
    /// The number of files closed.
    pub rotations: u64,
    /// The number of closed files removed.
    pub removed: u64,
    /// The number of these files that were removed because the disk was full
    /// ([`crate::Options::full_disk_files_min`]).
    pub removed_for_space: u64,
    /// The number of closed files compressed.
    pub compressed: u64,
    /// The total length of these files before they were compressed, in bytes.
    pub compressed_from_bytes: u64,
    /// The total length of these files after they were compressed, in bytes.
    pub compressed_to_bytes: u64,
    /// The number of compressions that failed.
    pub compress_failures: u64,
    /// The number of writes and file creations that failed and were retried.
    pub write_failures: u64,
    /// The number of syncs that failed.
    pub sync_failures: u64,
    /// The number of accepted bytes that are not written yet.
    pub memory_bytes: u64,
    /// `true` if the last attempt to write failed.
    pub is_failing: bool,
}

impl Stats {
    pub(crate) fn count_write(&mut self, bytes: u64, time: Duration) {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.writes += 1;
        self.written_bytes += bytes;
        self.write_us_total += us;
        self.write_us_max = self.write_us_max.max(us);
    }
}

/// An event reported by the background thread.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// A write failed. The lines stay in memory and the write is retried. After this event, further
    /// failures are not reported until a write has succeeded.
    WriteFailed(Arc<haul_disk::Error>),
    /// A write succeeded after [`Event::WriteFailed`].
    WriteRecovered,
    /// A sync failed: a power cut may lose lines written before it.
    SyncFailed(Arc<haul_disk::Error>),
    /// A file was closed. Its lines do not change any more.
    Closed {
        /// The name of the file in the directory.
        name: String,
        /// The length of the file in bytes.
        bytes: u64,
    },
    /// A closed file was replaced by a compressed one.
    Compressed {
        /// The name of the compressed file in the directory.
        name: String,
        /// The length of the file before it was compressed, in bytes.
        from_bytes: u64,
        /// The length of the compressed file in bytes.
        to_bytes: u64,
    },
    /// A closed file could not be compressed. It stays as it is, and is tried again when another
    /// file is closed and when the log is opened.
    CompressFailed(Arc<haul_disk::Error>),
    /// A closed file was removed because it exceeded a limit of [`crate::Retention`].
    Removed {
        /// The name of the file in the directory.
        name: String,
    },
    /// A closed file was removed because the disk was full
    /// ([`crate::Options::full_disk_files_min`]).
    RemovedForSpace {
        /// The name of the file in the directory.
        name: String,
        /// The length of the file in bytes.
        bytes: u64,
    },
    /// A closed file could not be removed. The removal is retried at the next rotation or, if the
    /// disk is full, at the next write.
    RemoveFailed(Arc<haul_disk::Error>),
}
