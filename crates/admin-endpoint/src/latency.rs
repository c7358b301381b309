//! Counts the durations of requests in buckets, without atomic read-modify-write operations.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::exposition::Family;

/// The number of buckets. Bucket `i` counts durations of less than 2^i µs that no earlier bucket
/// counts; the last one counts all longer durations.
const BUCKETS: usize = 28;
/// The first bucket whose bound is exposed, 16 µs. Shorter durations need no separate bounds.
const FIRST_EXPOSED: usize = 4;

/// A histogram that one thread updates and other threads read.
#[derive(Debug, Default)]
pub struct LatencyHistogram {
    counts: [AtomicU64; BUCKETS],
    sum_us: AtomicU64,
}

/// The sum of the histograms of several threads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LatencyStats {
    counts: [u64; BUCKETS],
    sum_us: u64,
}

impl LatencyHistogram {
    /// Counts a duration. Only one thread may call this.
    pub fn record(&self, duration: Duration) {
        let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let index = (u64::BITS - us.leading_zeros()) as usize;
        add(&self.counts[index.min(BUCKETS - 1)], 1);
        add(&self.sum_us, us);
    }
}

/// Adds to a counter with one writer, which needs no atomic addition.
fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(more), Relaxed);
}

impl LatencyStats {
    /// Adds the histogram of a thread.
    pub fn add(&mut self, histogram: &LatencyHistogram) {
        for (sum, count) in self.counts.iter_mut().zip(&histogram.counts) {
            *sum += count.load(Relaxed);
        }
        self.sum_us = self.sum_us.wrapping_add(histogram.sum_us.load(Relaxed));
    }

    /// Adds the counts of buckets like those of [`LatencyHistogram`]: bucket `i` counts durations of
    /// less than 2^i µs that no earlier bucket counts. More buckets than a histogram has are added
    /// to its last one. `sum_us` is the sum of all durations.
    pub fn add_counts(&mut self, counts: &[u64], sum_us: u64) {
        for (at, count) in counts.iter().enumerate() {
            self.counts[at.min(BUCKETS - 1)] += count;
        }
        self.sum_us = self.sum_us.wrapping_add(sum_us);
    }

    /// Returns the number of durations in each bucket.
    pub(crate) fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Writes the histogram to a family of metrics in seconds, with bounds from 16 µs to 67 s.
    pub fn write(&self, family: &mut Family<'_>) {
        let mut cumulative = 0;
        let mut buckets = Vec::with_capacity(BUCKETS);
        for (index, count) in self.counts[..BUCKETS - 1].iter().enumerate() {
            cumulative += count;
            if index >= FIRST_EXPOSED {
                buckets.push(((1_u64 << index) as f64 / 1e6, cumulative));
            }
        }
        family.histogram(&[], buckets, self.sum_us as f64 / 1e6, self.count());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exposition::{Exposition, MetricType};

    #[test]
    fn durations_are_counted_in_powers_of_two() {
        let threads = [LatencyHistogram::default(), LatencyHistogram::default()];
        for us in [0, 3, 100, 127, 128, 5_000] {
            threads[0].record(Duration::from_micros(us));
        }
        threads[1].record(Duration::from_secs(90));
        let mut stats = LatencyStats::default();
        threads.iter().for_each(|thread| stats.add(thread));
        let mut page = Exposition::default();
        stats.write(&mut page.family("t", MetricType::Histogram, "Times."));
        let text = page.into_text();
        for line in [
            "t_bucket{le=\"0.000016\"} 2",
            "t_bucket{le=\"0.000128\"} 4",
            "t_bucket{le=\"0.000256\"} 5",
            "t_bucket{le=\"0.008192\"} 6",
            "t_bucket{le=\"67.108864\"} 6",
            "t_bucket{le=\"+Inf\"} 7",
            "t_sum 90.005358",
            "t_count 7",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        assert_eq!(text.matches("_bucket").count(), 24);
    }

    #[test]
    fn counts_of_more_buckets_are_added_to_the_last() {
        let mut stats = LatencyStats::default();
        let mut counts = [0; 32];
        (counts[3], counts[27], counts[31]) = (1, 2, 4);
        stats.add_counts(&counts, 9);
        assert_eq!((stats.counts[3], stats.counts[BUCKETS - 1], stats.count()), (1, 6, 7));
        assert_eq!(stats.sum_us, 9);
    }
}
