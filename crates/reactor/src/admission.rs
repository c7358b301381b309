//! Limits the number of open connections of all threads of a server together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A limit on open connections. All clones share one counter.
#[derive(Debug, Clone)]
pub struct AdmissionLimit(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    open: AtomicUsize,
    max: usize,
}

impl AdmissionLimit {
    /// Creates a limit of `connections_max` open connections; further connections wait in the
    /// kernel's accept queue.
    pub fn new(connections_max: usize) -> Self {
        Self(Arc::new(Inner { open: AtomicUsize::new(0), max: connections_max }))
    }

    /// Returns the number of open connections.
    pub fn open(&self) -> usize {
        self.0.open.load(Relaxed)
    }

    /// Acquires a permit for one connection, or returns `None` at the limit.
    pub(crate) fn try_acquire(&self) -> Option<Permit> {
        let one_more = |open| (open < self.0.max).then_some(open + 1);
        self.0.open.fetch_update(Relaxed, Relaxed, one_more).ok()?;
        Some(Permit(self.clone()))
    }
}

/// One open connection, counted until this permit is dropped.
#[derive(Debug)]
pub(crate) struct Permit(AdmissionLimit);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.0.open.fetch_sub(1, Relaxed);
    }
}
