//! How many connections there may be, counted for all threads of a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A limit on connections that threads share; clones are the same limit.
#[derive(Debug, Clone)]
pub struct Gate(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    open: AtomicUsize,
    max: usize,
}

impl Gate {
    /// Lets `connections_max` in at a time; others wait in the kernel's queue.
    pub fn new(connections_max: usize) -> Self {
        Self(Arc::new(Inner { open: AtomicUsize::new(0), max: connections_max }))
    }

    /// How many are in.
    pub fn open(&self) -> usize {
        self.0.open.load(Relaxed)
    }

    /// A place, if there is one. It counts until it is dropped.
    pub(crate) fn enter(&self) -> Option<Place> {
        let one_more = |open| (open < self.0.max).then_some(open + 1);
        self.0.open.fetch_update(Relaxed, Relaxed, one_more).ok()?;
        Some(Place(self.clone()))
    }
}

/// A connection that counts.
#[derive(Debug)]
pub(crate) struct Place(Gate);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.0.open.fetch_sub(1, Relaxed);
    }
}
