//! What is counted.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Writes accepted; a long one counts for each of its parts.
    pub records: u64,
    /// Their bytes.
    pub record_bytes: u64,
    /// Of these, writes that replaced bytes still in memory, and took nothing.
    pub absorbed: u64,
    /// Sweeps over the files.
    pub rounds: u64,
    /// Write requests.
    pub writes: u64,
    /// Bytes of them.
    pub written_bytes: u64,
    /// Read requests: of what lies between pieces of a unit, or of a gap that was filled.
    pub reads: u64,
    /// Bytes of them.
    pub read_bytes: u64,
    /// Syncs.
    pub syncs: u64,
    /// How far a head would go for the writes in the order they were given.
    pub given_travel_bytes: u64,
    /// How far it goes from write request to write request.
    pub travel_bytes: u64,
}

/// The counters themselves.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) rounds: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) written_bytes: AtomicU64,
    pub(crate) reads: AtomicU64,
    pub(crate) read_bytes: AtomicU64,
    pub(crate) syncs: AtomicU64,
    pub(crate) travel_bytes: AtomicU64,
}

pub(crate) fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

impl Counters {
    /// With what was counted elsewhere.
    pub(crate) fn fill(&self, stats: Stats) -> Stats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            rounds: get(&self.rounds),
            writes: get(&self.writes),
            written_bytes: get(&self.written_bytes),
            reads: get(&self.reads),
            read_bytes: get(&self.read_bytes),
            syncs: get(&self.syncs),
            travel_bytes: get(&self.travel_bytes),
            ..stats
        }
    }
}
