//! The counters for access logs.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The counters for access logs.
#[derive(Debug, Default)]
pub(crate) struct LogCounts {
    /// Records in stored objects.
    pub(crate) delivered: Count,
    /// Records dropped for lack of memory.
    pub(crate) without_memory: Count,
    /// Records that the target bucket does not accept, or whose target bucket was deleted.
    pub(crate) refused: Count,
    /// Records whose delivery failed.
    pub(crate) failed: Count,
    /// Stored objects.
    pub(crate) objects: Count,
    /// Failed attempts to store an object.
    pub(crate) errors: Count,
    /// The memory for undelivered records.
    pub(crate) pending_bytes: Count,
}

/// A counter or a gauge.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, number: u64) {
        self.0.fetch_add(number, Relaxed);
    }

    pub(crate) fn set(&self, number: u64) {
        self.0.store(number, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
