//! What a log counts about itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How many powers of two of microseconds a [`Stats::sync_us`] tells apart.
pub const SYNC_BUCKETS: usize = 32;

/// Counters since the log was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Records appended.
    pub records: u64,
    /// Batches written, each with one write and one sync.
    pub batches: u64,
    /// Syncs waited for.
    pub syncs: u64,
    /// Bytes handed to the kernel, padding and rewritten pages included.
    pub written_bytes: u64,
    /// Time spent in syncs, in microseconds.
    pub sync_us_total: u64,
    /// Durations of syncs: element `i` counts those under `2^i` microseconds and not under half
    /// of that.
    pub sync_us: [u64; SYNC_BUCKETS],
}

/// The counters themselves: relaxed, since nobody decides anything by them.
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
    fn a_sync_is_counted_under_the_next_power_of_two() {
        let counters = Counters::default();
        for us in [0, 1, 2, 3, 1023, 1024] {
            counters.batch(0, Duration::from_micros(us));
        }
        let stats = counters.snapshot();
        assert_eq!((stats.sync_us[0], stats.sync_us[1], stats.sync_us[2]), (1, 1, 2));
        assert_eq!((stats.sync_us[10], stats.sync_us[11]), (1, 1));
    }
}
