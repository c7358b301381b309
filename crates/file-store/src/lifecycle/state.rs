//! The cached rules of an open store.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use haul_sync::RwLock;

use crate::lifecycle::rules::Lifecycle;
use crate::lifecycle::stats::LifecycleCounters;

/// The rules of a bucket and their revision, which changes with the rules.
#[derive(Debug)]
pub(crate) struct Rules {
    /// The rules as they were set.
    pub(crate) stored: Lifecycle,
    /// The rules that apply with the length of a day of this store.
    pub(crate) lifecycle: Lifecycle,
    pub(crate) revision: u64,
}

/// The cached rules of buckets, and the counters of sweeps.
#[derive(Debug)]
pub(crate) struct LifecycleState {
    /// The length of a day.
    day: Duration,
    /// Changed only under the lock of the bucket (that of its empty key).
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

    /// Returns the rules of a bucket, if they are cached.
    pub(crate) fn get(&self, bucket: &str) -> Option<Arc<Rules>> {
        self.rules.read().get(bucket).cloned()
    }

    /// Replaces the rules of a bucket.
    pub(crate) fn insert(&self, bucket: &str, stored: Lifecycle) -> Arc<Rules> {
        let revision = 1 + self.last_revision.fetch_add(1, Ordering::Relaxed);
        let lifecycle = stored.with_days_of(self.day);
        let rules = Arc::new(Rules { stored, lifecycle, revision });
        self.rules.write().insert(bucket.to_owned(), Arc::clone(&rules));
        rules
    }
}
