//! An open store's cached rules.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use haul_sync::RwLock;

use crate::lifecycle::rules::Lifecycle;
use crate::lifecycle::stats::LifecycleCounters;

/// A bucket's rules and their revision, which changes with the rules.
#[derive(Debug)]
pub(crate) struct Rules {
    /// The rules as they were set.
    pub(crate) stored: Lifecycle,
    /// The rules that apply with this store's day length.
    pub(crate) lifecycle: Lifecycle,
    pub(crate) revision: u64,
}

/// Cached bucket rules, and the sweep counters.
#[derive(Debug)]
pub(crate) struct LifecycleState {
    day: Duration,
    /// Changed only under the bucket's lock, which is the lock of its empty key.
    rules: RwLock<HashMap<String, Arc<Rules>>>,
    last_revision: AtomicU64,
    pub(crate) counters: LifecycleCounters,
}

impl LifecycleState {
    pub(crate) fn new(day: Duration) -> Self {
        let (rules, last_revision) = (RwLock::default(), AtomicU64::default());
        Self { day, rules, last_revision, counters: LifecycleCounters::default() }
    }

    /// Removes the cached rules of a bucket that is created or deleted.
    pub(crate) fn forget(&self, bucket: &str) {
        self.rules.write().remove(bucket);
    }

    /// Returns `true` if these are still the rules of the bucket.
    pub(crate) fn is_current(&self, bucket: &str, rules: &Rules) -> bool {
        self.rules.read().get(bucket).is_some_and(|current| current.revision == rules.revision)
    }

    /// Returns a bucket's rules, if they are cached.
    pub(crate) fn get(&self, bucket: &str) -> Option<Arc<Rules>> {
        self.rules.read().get(bucket).cloned()
    }

    /// Replaces a bucket's rules.
    pub(crate) fn insert(&self, bucket: &str, stored: Lifecycle) -> Arc<Rules> {
        let revision = 1 + self.last_revision.fetch_add(1, Ordering::Relaxed);
        let lifecycle = stored.with_days_of(self.day);
        let rules = Arc::new(Rules { stored, lifecycle, revision });
        self.rules.write().insert(bucket.to_owned(), Arc::clone(&rules));
        rules
    }
}
