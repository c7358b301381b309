//! Event targets that notification rules name and the server does not have. Their events are lost.

use std::collections::{BTreeMap, BTreeSet};

use haul_file_store::EventQueueState;
use haul_store_pool::Pool;

use crate::events::target::{EventTargets, LISTENERS};
use crate::settings::NOTIFICATION;
use crate::settings::parsed::notification;

/// A target that the server does not have.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct UnknownTarget {
    pub(crate) name: String,
    /// The buckets whose rules name the target.
    pub(crate) buckets: BTreeSet<String>,
    /// The events that are queued from the time when the server had the target.
    pub(crate) queue: EventQueueState,
    /// The number of events that were lost since the start.
    pub(crate) lost: u64,
}

impl EventTargets {
    /// Returns the targets that the server does not have: those that rules name, that have queued
    /// events, or whose events were lost since the start. Those of a bucket whose settings cannot
    /// be read are missing.
    pub(crate) fn unknown(&self, pool: &Pool) -> Vec<UnknownTarget> {
        let mut found = BTreeMap::<String, UnknownTarget>::new();
        for bucket in pool.buckets().unwrap_or_default() {
            for target in self.unknown_in(pool, &bucket.name) {
                found.entry(target).or_default().buckets.insert(bucket.name.clone());
            }
        }
        for (name, queue) in pool.stores().flat_map(|store| store.events().queues()) {
            if queue.events > 0 && name != LISTENERS && self.find(&name).is_none() {
                let all = &mut found.entry(name).or_default().queue;
                all.events += queue.events;
                all.bytes += queue.bytes;
            }
        }
        for (name, buckets) in self.lost().counts() {
            found.entry(name).or_default().lost = buckets.values().sum();
        }
        let named = |(name, target)| UnknownTarget { name, ..target };
        found.into_iter().map(named).collect()
    }

    /// Returns the targets, and the number of lost events, of the buckets whose rules still name a
    /// target that the server does not have: `(bucket, target, events)`.
    pub(crate) fn losing_buckets(&self, pool: &Pool) -> Vec<(String, String, u64)> {
        let mut losing = Vec::new();
        for (target, buckets) in self.lost().counts() {
            for (bucket, events) in buckets {
                if self.unknown_in(pool, &bucket).contains(&target) {
                    losing.push((bucket, target.clone(), events));
                }
            }
        }
        losing
    }

    /// Logs a warning for each bucket and target in its rules that the server does not have.
    pub(super) fn warn_of_unknown(&self, pool: &Pool) {
        for target in self.unknown(pool) {
            for bucket in &target.buckets {
                tracing::warn!(
                    queue = target.name,
                    bucket,
                    "a bucket's notification names an event target that the server does not have: \
                     its events are lost until --event-targets has the target, or the notification \
                     changes"
                );
            }
        }
    }

    /// Returns the targets in a bucket's rules that the server does not have.
    fn unknown_in(&self, pool: &Pool, bucket: &str) -> BTreeSet<String> {
        let Ok(settings) = pool.bucket_settings(bucket) else { return BTreeSet::new() };
        if settings.get(NOTIFICATION).is_none() {
            return BTreeSet::new();
        }
        let configuration = notification(&settings).ok().flatten();
        let rules = configuration.iter().flat_map(|configuration| &configuration.rules);
        let unknown = rules.filter(|rule| self.find(&rule.target).is_none());
        unknown.map(|rule| rule.target.clone()).collect()
    }
}
