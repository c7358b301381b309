//! Statistics counters.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of some threads. Relaxed atomics suffice, because no decision depends on them.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) puts: AtomicU64,
    pub(crate) deletes: AtomicU64,
    pub(crate) gets: AtomicU64,
    pub(crate) lists: AtomicU64,
    pub(crate) needle_reads: AtomicU64,
    pub(crate) needle_read_bytes: AtomicU64,
    pub(crate) volumes_compacted: AtomicU64,
    pub(crate) scrubbed_bytes: AtomicU64,
    pub(crate) scrubs: AtomicU64,
}

impl Counters {
    pub(crate) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn needle_read(&self, bytes: usize) {
        self.needle_reads(1, bytes as u64);
    }

    pub(crate) fn needle_reads(&self, reads: u64, bytes: u64) {
        Self::add(&self.needle_reads, reads);
        Self::add(&self.needle_read_bytes, bytes);
    }
}
