//! Counts the events that are lost because the server does not have their target.

use std::collections::BTreeMap;
use std::time::Instant;

use parking_lot::Mutex;

use crate::log_limit::LogLimit;

/// The events that were lost since the start of the server.
#[derive(Debug, Default)]
pub(super) struct LostEvents {
    /// The number of events by target and bucket.
    counts: Mutex<BTreeMap<String, BTreeMap<String, u64>>>,
    log: LogLimit<String>,
}

impl LostEvents {
    /// Counts a lost event, and logs it from time to time.
    pub(super) fn count(&self, target: &str, bucket: &str, key: &str) {
        let mut counts = self.counts.lock();
        let buckets = counts.entry(target.to_owned()).or_default();
        *buckets.entry(bucket.to_owned()).or_default() += 1;
        drop(counts);
        if self.log.permits(target.to_owned(), Instant::now()) {
            let queue = target;
            tracing::error!(
                queue,
                bucket,
                key,
                "an event is lost: the server has no such event target"
            );
        }
    }

    /// Returns the number of lost events by target and bucket.
    pub(super) fn counts(&self) -> BTreeMap<String, BTreeMap<String, u64>> {
        self.counts.lock().clone()
    }
}
