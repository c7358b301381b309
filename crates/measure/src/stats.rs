//! Summarises samples: numbers as minimum, median and maximum, latencies as a histogram.

use std::time::Duration;

use hdrhistogram::Histogram;

/// The minimum, median and maximum of some numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The smallest number.
    pub min: f64,
    /// The middle number, or the mean of the two middle numbers.
    pub median: f64,
    /// The largest number.
    pub max: f64,
}

impl Spread {
    /// Returns the spread of some numbers; `None` if there are none or one is NaN.
    #[must_use]
    pub fn of(numbers: &[f64]) -> Option<Self> {
        let mut sorted = numbers.to_vec();
        if sorted.iter().any(|number| number.is_nan()) {
            return None;
        }
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let half = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[half]
        } else {
            f64::midpoint(sorted[half - 1], sorted[half])
        };
        Some(Self { min, median, max })
    }
}

/// The longest duration that is recorded, about a year in nanoseconds. A longer duration is
/// recorded as this value.
const NANOS_MAX: u64 = 1 << 55;

/// A histogram of durations with a precision of 0.1 %.
#[derive(Debug, Clone)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        // Three significant digits give a precision of 0.1 %.
        Self(Histogram::new(3).expect("three digits are allowed"))
    }
}

impl Latencies {
    /// Records one duration.
    pub fn record(&mut self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).min(NANOS_MAX);
        self.0.record(nanos).expect("a histogram that resizes takes a year");
    }

    /// Records the duration of one call of a caller that intends to start a call every `interval`.
    /// If the call took longer than `interval`, also records each call that the caller could not
    /// start in the meantime, with the time it had to wait (correction of coordinated omission).
    pub fn record_every(&mut self, time: Duration, interval: Duration) {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let (time, interval) = (nanos(time).min(NANOS_MAX), nanos(interval));
        self.0.record_correct(time, interval).expect("a histogram that resizes takes a year");
    }

    /// Adds all durations recorded in `others`.
    pub fn add(&mut self, others: &Self) {
        // The error is impossible: only a histogram of fixed range rejects values, and this one
        // resizes.
        self.0.add(&others.0).expect("a histogram that resizes takes all");
    }

    /// Returns the number of recorded durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Returns the percentile `percent` in microseconds; `None` if no duration was recorded.
    #[must_use]
    pub fn percentile_us(&self, percent: f64) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.value_at_percentile(percent) as f64 / 1000.0)
    }

    /// Returns the longest duration in microseconds; `None` if no duration was recorded.
    #[must_use]
    pub fn max_us(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.max() as f64 / 1000.0)
    }
}

/// The latencies of operations, and the elapsed time in which they ran.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    /// The latency of each operation.
    pub latencies: Latencies,
    /// The elapsed time of all operations together.
    pub time: Duration,
}

impl Sample {
    /// Returns operations per second; `None` without operations.
    #[must_use]
    pub fn per_second(&self) -> Option<f64> {
        let seconds = self.time.as_secs_f64();
        (self.latencies.count() > 0 && seconds > 0.0)
            .then(|| self.latencies.count() as f64 / seconds)
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.latencies.add(&other.latencies);
        self.time += other.time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_the_middle_value() {
        for (numbers, expected) in [
            (&[3.0, 1.0, 2.0][..], Some((1.0, 2.0, 3.0))),
            (&[4.0, 1.0, 2.0, 3.0], Some((1.0, 2.5, 4.0))),
            (&[7.0], Some((7.0, 7.0, 7.0))),
            (&[], None),
            (&[1.0, f64::NAN], None),
        ] {
            let got = Spread::of(numbers).map(|spread| (spread.min, spread.median, spread.max));
            assert_eq!(got, expected, "{numbers:?}");
        }
    }

    #[test]
    fn durations_are_capped_at_a_year() {
        let mut all = Latencies::default();
        all.record(Duration::MAX);
        all.record(Duration::ZERO);
        assert!(all.max_us().is_some_and(|us| us > 3e13) && all.count() == 2);
    }

    #[test]
    fn a_stall_counts_for_each_call_it_delayed() {
        let (mut all, ms) = (Latencies::default(), Duration::from_millis);
        all.record_every(ms(1), ms(10));
        assert_eq!(all.count(), 1);
        all.record_every(ms(100), ms(10));
        assert_eq!(all.count(), 11, "100, 90, ... 10 ms");
        assert!(all.percentile_us(50.0).is_some_and(|us| (us / 50_000.0 - 1.0).abs() < 2e-3));
    }

    #[test]
    fn percentiles_cover_all_added_samples() {
        let (mut all, mut slow) = (Latencies::default(), Latencies::default());
        assert_eq!((all.count(), all.percentile_us(50.0), all.max_us()), (0, None, None));
        for _ in 0..98 {
            all.record(Duration::from_micros(100));
        }
        slow.record(Duration::from_millis(5));
        slow.record(Duration::from_millis(7));
        all.add(&slow);
        let near = |got: Option<f64>, us: f64| got.is_some_and(|got| (got / us - 1.0).abs() < 2e-3);
        assert_eq!(all.count(), 100);
        assert!(near(all.percentile_us(50.0), 100.0) && near(all.percentile_us(98.0), 100.0));
        assert!(near(all.percentile_us(99.0), 5000.0) && near(all.max_us(), 7000.0));
    }
}
