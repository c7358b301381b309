//! What one measurement of a server came to, and many of them. Pure.

use std::time::Duration;

use super::usage::Used;
use crate::stats::{Latencies, Spread};

/// One measurement.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sample {
    pub(crate) wall: Duration,
    /// Requests, messages, connections: whatever was done.
    pub(crate) done: u64,
    /// What went through, in one direction and the other.
    pub(crate) bytes: u64,
    pub(crate) used: Used,
    pub(crate) latencies: Latencies,
    /// What of the data is in the page cache afterwards.
    pub(crate) cached_bytes: Option<u64>,
}

fn per(amount: f64, time: Duration) -> Option<f64> {
    let ratio = amount / time.as_secs_f64();
    ratio.is_finite().then_some(ratio)
}

impl Sample {
    pub(crate) fn per_second(&self) -> Option<f64> {
        per(self.done as f64, self.wall)
    }

    /// How much would be done if nothing but this kept the server's core busy.
    pub(crate) fn per_core_second(&self) -> Option<f64> {
        per(self.done as f64, self.used.core?)
    }

    pub(crate) fn mib_per_second(&self) -> Option<f64> {
        per(self.bytes as f64 / f64::from(1 << 20), self.wall)
    }

    /// Seconds of the server's processes for each GB (10^9 bytes).
    pub(crate) fn process_s_per_gb(&self) -> Option<f64> {
        self.each(self.used.process?, self.bytes as f64 / 1e9)
    }

    /// Seconds of the server's core for each GB.
    pub(crate) fn core_s_per_gb(&self) -> Option<f64> {
        self.each(self.used.core?, self.bytes as f64 / 1e9)
    }

    /// Microseconds of the server's processes for each thing done.
    pub(crate) fn process_us(&self) -> Option<f64> {
        self.each(self.used.process?, self.done as f64 / 1e6)
    }

    /// Microseconds of the server's core for each thing done.
    pub(crate) fn core_us(&self) -> Option<f64> {
        self.each(self.used.core?, self.done as f64 / 1e6)
    }

    /// How busy the server's core was, and the load's.
    pub(crate) fn busy_percent(&self, used: Option<Duration>) -> Option<f64> {
        Some(100.0 * per(used?.as_secs_f64(), self.wall)?)
    }

    /// What is in the page cache, of what went through.
    pub(crate) fn cached_percent(&self) -> Option<f64> {
        let percent = 100.0 * self.cached_bytes? as f64 / self.bytes as f64;
        percent.is_finite().then_some(percent)
    }

    fn each(&self, time: Duration, amount: f64) -> Option<f64> {
        let ratio = time.as_secs_f64() / amount;
        ratio.is_finite().then_some(ratio)
    }
}

/// A number of a sample.
pub(crate) type Figure = fn(&Sample) -> Option<f64>;

/// The rounds of one row.
#[derive(Debug, Clone, Default)]
pub(crate) struct Samples(pub(crate) Vec<Sample>);

impl Samples {
    /// The spread over the rounds; `None` where a round could not tell.
    pub(crate) fn spread(&self, figure: impl Fn(&Sample) -> Option<f64>) -> Option<Spread> {
        let numbers: Option<Vec<_>> = self.0.iter().map(figure).collect();
        Spread::of(&numbers?)
    }

    pub(crate) fn median(&self, figure: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        self.spread(figure).map(|spread| spread.median)
    }

    /// The median of the rounds' own percentiles: one bad round does not make it.
    pub(crate) fn percentile_us(&self, percent: f64) -> Option<f64> {
        self.median(|sample| sample.latencies.percentile_us(percent))
    }

    /// The median of the ratios of pairs, each of one round: what drifts from round to round is in
    /// neither.
    pub(crate) fn ratio(&self, to: &Self, figure: Figure) -> Option<f64> {
        let pairs = self.0.iter().zip(&to.0).filter_map(|(own, other)| {
            let ratio = figure(own)? / figure(other)?;
            ratio.is_finite().then_some(ratio)
        });
        Spread::of(&pairs.collect::<Vec<_>>()).map(|spread| spread.median)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(done: u64, process_ms: u64, core_ms: u64) -> Sample {
        let ms = Duration::from_millis;
        let used = Used { process: Some(ms(process_ms)), core: Some(ms(core_ms)), load_core: None };
        Sample { wall: ms(2000), done, bytes: done * 1_000_000, used, ..Sample::default() }
    }

    #[test]
    fn figures_are_for_a_second_a_core_a_gigabyte_and_each() {
        let one = sample(1000, 400, 500);
        assert_eq!(one.per_second(), Some(500.0));
        assert_eq!(one.per_core_second(), Some(2000.0));
        assert_eq!(one.process_s_per_gb(), Some(0.4));
        assert_eq!(one.core_s_per_gb(), Some(0.5));
        assert_eq!((one.process_us(), one.core_us()), (Some(400.0), Some(500.0)));
        assert_eq!(one.busy_percent(one.used.core), Some(25.0));
        let mib = one.mib_per_second().unwrap();
        assert!((mib - 476.837).abs() < 0.001, "{mib}");
    }

    #[test]
    fn what_is_not_known_is_no_number() {
        let nothing = Sample::default();
        let figures: [Figure; 7] = [
            Sample::per_second,
            Sample::per_core_second,
            Sample::mib_per_second,
            Sample::process_s_per_gb,
            Sample::core_s_per_gb,
            Sample::process_us,
            Sample::core_us,
        ];
        assert!(figures.iter().all(|figure| figure(&nothing).is_none()));
        assert_eq!(Samples::default().median(Sample::per_second), None);
        let half = Samples(vec![sample(1, 1, 1), nothing]);
        assert_eq!(half.median(Sample::per_second), None, "one round is missing");
    }

    #[test]
    fn a_ratio_is_that_of_pairs_of_one_round() {
        // The machine grew slower; in each round one took twice as long as the other.
        let slow = Samples([100, 200, 1000].map(|ms| sample(1000, ms, ms)).into());
        let fast = Samples([50, 100, 500].map(|ms| sample(1000, ms, ms)).into());
        assert_eq!(slow.ratio(&fast, Sample::process_s_per_gb), Some(2.0));
        assert_eq!(slow.ratio(&Samples::default(), Sample::core_us), None);
    }
}
