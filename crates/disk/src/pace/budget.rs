//! Shares one pacer's dirty bytes among several files.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A budget that several [`Pacer`](super::Pacer)s share by
/// [`Pacer::sharing`](super::Pacer::sharing), for example the pacers for all files that a program
/// writes to one disk.
#[derive(Debug, Clone, Default)]
pub struct PaceBudget {
    pacers: Arc<AtomicU64>,
}

impl PaceBudget {
    pub(super) fn share(&self) -> Share {
        self.pacers.fetch_add(1, Ordering::Relaxed);
        Share(Arc::clone(&self.pacers))
    }
}

/// One pacer's share, which the others get when it is dropped.
#[derive(Debug)]
pub(super) struct Share(Arc<AtomicU64>);

impl Share {
    /// Returns how many pacers share the budget, at least 1.
    pub(super) fn pacers(&self) -> u64 {
        self.0.load(Ordering::Relaxed).max(1)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
