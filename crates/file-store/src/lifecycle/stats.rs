//! The state and the counters of sweeps.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use haul_sync::Mutex;

use crate::lifecycle::report::SweepReport;

/// The state of sweeps, and their counters since the store was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LifecycleStats {
    /// `true` while a bucket is being swept.
    pub sweeping: bool,
    /// Completed bucket sweeps.
    pub sweeps: u64,
    /// Listed keys.
    pub scanned_keys: u64,
    /// Objects and versions whose tags were read, because only rules with tags may expire them.
    pub tag_reads: u64,
    /// Objects deleted because they expired.
    pub expired_objects: u64,
    /// Noncurrent versions, and delete markers, removed because they expired.
    pub expired_versions: u64,
    /// Bytes of these objects and versions.
    pub expired_bytes: u64,
    /// Aborted stale uploads.
    pub aborted_uploads: u64,
    /// Objects, versions and uploads that were kept because their newest version may be in a
    /// corrupt range, or because their tags cannot be read.
    pub skipped: u64,
    /// Expired versions that were kept because a lock protects them. A version that stays locked is
    /// counted by each sweep.
    pub locked: u64,
    /// Failed sweeps, which are repeated at the next check.
    pub errors: u64,
    /// The time at which the last completed bucket sweep ended.
    pub last_sweep: Option<SystemTime>,
    /// The duration of that sweep, in microseconds.
    pub last_sweep_us: u64,
}

impl LifecycleStats {
    /// Returns the statistics of two stores of a pool together.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        let (last_sweep, last_sweep_us) =
            (self.last_sweep, self.last_sweep_us).max((other.last_sweep, other.last_sweep_us));
        Self {
            sweeping: self.sweeping || other.sweeping,
            sweeps: self.sweeps + other.sweeps,
            scanned_keys: self.scanned_keys + other.scanned_keys,
            tag_reads: self.tag_reads + other.tag_reads,
            expired_objects: self.expired_objects + other.expired_objects,
            expired_versions: self.expired_versions + other.expired_versions,
            expired_bytes: self.expired_bytes + other.expired_bytes,
            aborted_uploads: self.aborted_uploads + other.aborted_uploads,
            skipped: self.skipped + other.skipped,
            locked: self.locked + other.locked,
            errors: self.errors + other.errors,
            last_sweep,
            last_sweep_us,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct LifecycleCounters {
    sweeping: AtomicBool,
    scanned_keys: AtomicU64,
    tag_reads: AtomicU64,
    expired_objects: AtomicU64,
    expired_versions: AtomicU64,
    locked: AtomicU64,
    expired_bytes: AtomicU64,
    aborted_uploads: AtomicU64,
    skipped: AtomicU64,
    outcome: Mutex<Outcome>,
}

/// The outcome of a bucket sweep.
#[derive(Debug, Default)]
struct Outcome {
    sweeps: u64,
    errors: u64,
    last_sweep: Option<(SystemTime, Duration)>,
    last_error: Option<String>,
}

impl LifecycleCounters {
    /// Adds the counts of one sweep step.
    pub(crate) fn add(&self, step: &SweepReport) {
        let add = |counter: &AtomicU64, count| counter.fetch_add(count, Ordering::Relaxed);
        add(&self.scanned_keys, step.scanned_keys);
        add(&self.tag_reads, step.tag_reads);
        add(&self.expired_objects, step.expired_objects);
        add(&self.expired_versions, step.expired_versions);
        add(&self.locked, step.locked);
        add(&self.expired_bytes, step.expired_bytes);
        add(&self.aborted_uploads, step.aborted_uploads);
        add(&self.skipped, step.skipped);
    }

    /// Records that a bucket sweep starts or ends.
    pub(crate) fn set_sweeping(&self, is_sweeping: bool) {
        self.sweeping.store(is_sweeping, Ordering::Relaxed);
    }

    pub(crate) fn completed(&self, now: SystemTime, took: Duration) {
        let mut outcome = self.outcome.lock();
        outcome.sweeps += 1;
        outcome.last_sweep = Some((now, took));
    }

    pub(crate) fn failed(&self, bucket: &str, error: &str) {
        let mut outcome = self.outcome.lock();
        outcome.errors += 1;
        outcome.last_error = Some(format!("bucket \"{bucket}\": {error}"));
    }

    /// Returns the last failed sweep's message.
    pub(crate) fn last_error(&self) -> Option<String> {
        self.outcome.lock().last_error.clone()
    }

    pub(crate) fn stats(&self) -> LifecycleStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let outcome = self.outcome.lock();
        let (last_sweep, took) = outcome.last_sweep.unzip();
        LifecycleStats {
            sweeping: self.sweeping.load(Ordering::Relaxed),
            sweeps: outcome.sweeps,
            scanned_keys: read(&self.scanned_keys),
            tag_reads: read(&self.tag_reads),
            expired_objects: read(&self.expired_objects),
            expired_versions: read(&self.expired_versions),
            locked: read(&self.locked),
            expired_bytes: read(&self.expired_bytes),
            aborted_uploads: read(&self.aborted_uploads),
            skipped: read(&self.skipped),
            errors: outcome.errors,
            last_sweep,
            last_sweep_us: took.map_or(0, |took| took.as_micros().try_into().unwrap_or(u64::MAX)),
        }
    }
}
