//! Counts a writer's writes, requests and seek distances. In a round, the writer writes its
//! buffered writes to the files.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters since the writer was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Writes accepted. If a write was split, each part counts.
    pub records: u64,
    /// The accepted writes' total length, in bytes.
    pub record_bytes: u64,
    /// Accepted writes that only overwrote buffered bytes and therefore took no memory.
    pub absorbed: u64,
    /// Rounds with at least one write.
    pub rounds: u64,
    /// Write requests to the files.
    pub writes: u64,
    /// The write requests' total length, in bytes.
    pub written_bytes: u64,
    /// Read requests. The writer reads the missing bytes of partially written units, and the gaps
    /// between requests that it merges.
    pub reads: u64,
    /// The read requests' total length, in bytes.
    pub read_bytes: u64,
    /// File syncs.
    pub syncs: u64,
    /// The total seek distance, in bytes, that the accepted writes would have in submission order.
    pub unsorted_seek_bytes: u64,
    /// The write requests' total seek distance, in bytes.
    pub seek_bytes: u64,
}

/// The counters that the writing thread updates.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) rounds: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) written_bytes: AtomicU64,
    pub(crate) reads: AtomicU64,
    pub(crate) read_bytes: AtomicU64,
    pub(crate) syncs: AtomicU64,
    pub(crate) seek_bytes: AtomicU64,
}

pub(crate) fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

impl Counters {
    /// Returns `stats` with the writing thread's fields replaced by these counters.
    pub(crate) fn merge(&self, stats: Stats) -> Stats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            rounds: get(&self.rounds),
            writes: get(&self.writes),
            written_bytes: get(&self.written_bytes),
            reads: get(&self.reads),
            read_bytes: get(&self.read_bytes),
            syncs: get(&self.syncs),
            seek_bytes: get(&self.seek_bytes),
            ..stats
        }
    }
}
