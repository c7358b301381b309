//! What a log counts and tells about itself.

use std::sync::Arc;
use std::time::Duration;

/// Counters since the log was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Calls that brought lines.
    pub appends: u64,
    /// Bytes they brought and that were taken.
    pub bytes: u64,
    /// Lines that were dropped for want of memory, by [`crate::WhenFull::DropNewest`].
    pub dropped_lines: u64,
    /// Bytes in them.
    pub dropped_bytes: u64,
    /// Times somebody had to wait for a buffer.
    pub waits: u64,
    /// Buffers written.
    pub writes: u64,
    /// Bytes handed to the kernel.
    pub written_bytes: u64,
    /// Time that took, in microseconds.
    pub write_us_total: u64,
    /// The longest of them, in microseconds.
    pub write_us_max: u64,
    /// Syncs of files.
    pub syncs: u64,
    /// Files closed.
    pub rotations: u64,
    /// Closed files removed.
    pub removed: u64,
    /// Writes, and makings of files, that failed and were tried again.
    pub write_failures: u64,
    /// Syncs that failed.
    pub sync_failures: u64,
    /// Bytes in memory now.
    pub memory_bytes: u64,
    /// Whether the last attempt to write failed.
    pub is_stuck: bool,
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

/// What the background thread tells whoever watches it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// Writing failed. The lines stay in memory, and it is tried again; this is told once, until
    /// it works again.
    Stuck(Arc<haul_disk::Error>),
    /// Writing works again.
    Unstuck,
    /// A sync failed: a power cut may take what was written before.
    Unsynced(Arc<haul_disk::Error>),
    /// A file was closed: nobody will change it any more.
    Closed {
        /// Its name in the directory.
        name: String,
        /// How long it is.
        bytes: u64,
    },
    /// An old file was removed.
    Removed {
        /// Its name in the directory.
        name: String,
    },
    /// An old file could not be removed; that is tried again at the next rotation.
    NotRemoved(Arc<haul_disk::Error>),
}
