//! Provides an atomic counter for statistics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A counter that one thread increments and other threads read.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds `more` to the counter.
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Relaxed);
    }

    /// Returns the current value.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
