//! Counts a log's records and batches, and the time spent on syncs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The number of buckets in [`Stats::sync_us`], one for each power of two in microseconds.
pub const SYNC_BUCKETS: usize = 32;

/// A log's counters since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Records appended.
    pub records: u64,
    /// Batches written, each with one write and one sync.
    pub batches: u64,
    /// Batch syncs, equal to `batches`. Background syncs of new segments are not counted.
    pub syncs: u64,
    /// Bytes written in batches, including padding and the synced bytes in a batch's first page,
    /// which are written again.
    pub written_bytes: u64,
    /// The total duration of batch writes and syncs, in microseconds.
    pub sync_us_total: u64,
    /// A histogram of the time each batch took to write and sync: element `i` counts the batches
    /// that took at least `2^(i-1)` and less than `2^i` microseconds. Element 0 counts batches
    /// below one microsecond, and the last element has no upper bound.
    pub sync_us: [u64; SYNC_BUCKETS],
}

/// The counters that a log's threads update. Relaxed ordering suffices because no control flow
/// depends on them.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    records: AtomicU64,
    batches: AtomicU64,
    written_bytes: AtomicU64,
    sync_us_total: AtomicU64,
    sync_us: [AtomicU64; SYNC_BUCKETS],
}

impl Counters {
    pub(crate) fn record(&self) {
        self.records.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn batch(&self, written_bytes: u64, sync: Duration) {
        let us = u64::try_from(sync.as_micros()).unwrap_or(u64::MAX);
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.written_bytes.fetch_add(written_bytes, Ordering::Relaxed);
        self.sync_us_total.fetch_add(us, Ordering::Relaxed);
        let bucket = (u64::BITS - us.leading_zeros()) as usize;
        self.sync_us[bucket.min(SYNC_BUCKETS - 1)].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self) -> Stats {
        let batches = self.batches.load(Ordering::Relaxed);
        Stats {
            records: self.records.load(Ordering::Relaxed),
            batches,
            syncs: batches,
            written_bytes: self.written_bytes.load(Ordering::Relaxed),
            sync_us_total: self.sync_us_total.load(Ordering::Relaxed),
            sync_us: std::array::from_fn(|i| self.sync_us[i].load(Ordering::Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sync_duration_is_counted_in_its_power_of_two_bucket() {
        let counters = Counters::default();
        for us in [0, 1, 2, 3, 1023, 1024] {
            counters.batch(0, Duration::from_micros(us));
        }
        let stats = counters.snapshot();
        assert_eq!((stats.sync_us[0], stats.sync_us[1], stats.sync_us[2]), (1, 1, 2));
        assert_eq!((stats.sync_us[10], stats.sync_us[11]), (1, 1));
    }
}
