//! The cached rules of an open store.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use haul_sync::RwLock;

use crate::lifecycle::rules::Lifecycle;
use crate::lifecycle::stats::LifecycleCounters;

/// The rules of a bucket and their revision, which changes with the rules.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) lifecycle: Lifecycle,
    pub(super) revision: u64,
}

/// The cached rules of buckets, and the counters of sweeps.
#[derive(Debug, Default)]
pub(crate) struct LifecycleState {
    /// Changed only under the lock of the bucket (that of its empty key).
    rules: RwLock<HashMap<String, Arc<Rules>>>,
    last_revision: AtomicU64,
    pub(crate) counters: LifecycleCounters,
}

impl LifecycleState {
    /// Removes the cached rules of a bucket that is created or deleted.
    pub(crate) fn forget(&self, bucket: &str) {
        self.rules.write().remove(bucket);
    }

    /// Returns `true` if these are still the rules of the bucket.
    pub(super) fn is_current(&self, bucket: &str, rules: &Rules) -> bool {
        self.rules.read().get(bucket).is_some_and(|current| current.revision == rules.revision)
    }

    /// Returns the rules of a bucket, if they are cached.
    pub(super) fn get(&self, bucket: &str) -> Option<Arc<Rules>> {
        self.rules.read().get(bucket).cloned()
    }

    /// Replaces the rules of a bucket.
    pub(super) fn insert(&self, bucket: &str, lifecycle: Lifecycle) -> Arc<Rules> {
        let revision = 1 + self.last_revision.fetch_add(1, Ordering::Relaxed);
        let rules = Arc::new(Rules { lifecycle, revision });
        self.rules.write().insert(bucket.to_owned(), Arc::clone(&rules));
        rules
    }
}
