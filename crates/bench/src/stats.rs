//! What many measurements come to. Pure.

use std::time::Duration;

use hdrhistogram::Histogram;

/// The median, with the smallest and the largest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The smallest.
    pub min: f64,
    /// The one in the middle; between two in the middle, their mean.
    pub median: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// The spread of some numbers; `None` of no numbers, or of what is no number.
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

/// About a year: what takes longer is taken for that.
const NANOS_MAX: u64 = 1 << 55;

/// How long many things took, one by one.
#[derive(Debug, Clone)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        // Three digits: 0.1 % exact.
        Self(Histogram::new(3).expect("three digits are allowed"))
    }
}

impl Latencies {
    /// One more.
    pub fn record(&mut self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).min(NANOS_MAX);
        self.0.record(nanos).expect("a histogram that resizes takes a year");
    }

    /// One more, of somebody who writes every `interval`: of a time that is longer, the others who
    /// would have come meanwhile count too, with what they would still have had to wait.
    pub fn record_every(&mut self, time: Duration, interval: Duration) {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let (time, interval) = (nanos(time).min(NANOS_MAX), nanos(interval));
        self.0.record_correct(time, interval).expect("a histogram that resizes takes a year");
    }

    /// All of `others` too.
    pub fn add(&mut self, others: &Self) {
        // It grows as it must; only a fixed one could refuse.
        self.0.add(&others.0).expect("a histogram that resizes takes all");
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// What `percent` of them do not exceed, in microseconds; `None` when there are none.
    #[must_use]
    pub fn percentile_us(&self, percent: f64) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.value_at_percentile(percent) as f64 / 1000.0)
    }

    /// The longest, in microseconds.
    #[must_use]
    pub fn max_us(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.max() as f64 / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
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
    fn the_longest_of_times_is_a_year() {
        let mut all = Latencies::default();
        all.record(Duration::MAX);
        all.record(Duration::ZERO);
        assert!(all.max_us().is_some_and(|us| us > 3e13) && all.count() == 2);
    }

    #[test]
    fn a_stall_counts_for_all_who_would_have_come_meanwhile() {
        let (mut all, ms) = (Latencies::default(), Duration::from_millis);
        all.record_every(ms(1), ms(10));
        assert_eq!(all.count(), 1);
        all.record_every(ms(100), ms(10));
        assert_eq!(all.count(), 11, "100, 90, ... 10 ms");
        assert!(all.percentile_us(50.0).is_some_and(|us| (us / 50_000.0 - 1.0).abs() < 2e-3));
    }

    #[test]
    fn percentiles_are_those_of_all_that_were_added() {
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
