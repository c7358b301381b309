//! The store that a server serves. It can be replaced while the server runs.

use std::ops::Deref;
use std::sync::Arc;

use arc_swap::ArcSwap;
use haul_store_pool::Pool;

/// A store that can be replaced while requests read it.
#[derive(Debug)]
pub struct ServedStore(ArcSwap<Pool>);

impl ServedStore {
    /// Creates the value with its first store.
    #[must_use]
    pub fn new(store: Arc<Pool>) -> Self {
        Self(ArcSwap::new(store))
    }

    /// Serves `store` from the next request on, and returns the previous store, which calls in
    /// progress may still use.
    ///
    /// Cached objects stay valid if both stores have the same log, or if `store` has a later state
    /// of the log.
    pub fn replace(&self, store: Arc<Pool>) -> Arc<Pool> {
        self.0.swap(store)
    }

    /// Returns the store for calls that do no I/O.
    pub(crate) fn load(&self) -> impl Deref<Target = Pool> {
        Loaded(self.0.load())
    }

    /// Returns the store for a call on another thread.
    pub(crate) fn get(&self) -> Arc<Pool> {
        self.0.load_full()
    }
}

/// A reference to the store, which costs no write to its shared counter.
struct Loaded(arc_swap::Guard<Arc<Pool>>);

impl Deref for Loaded {
    type Target = Pool;

    fn deref(&self) -> &Pool {
        &self.0
    }
}
