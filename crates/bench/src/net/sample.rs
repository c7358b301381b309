//! Measures a server once, and computes figures such as the CPU time per request.

use std::time::{Duration, Instant};

use super::usage::{Meter, Used};
use haul_measure::{Latencies, Result, Spread};

/// The result of one measurement.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sample {
    pub(crate) wall: Duration,
    /// The number of requests, messages or connections; 0 if they were not counted.
    pub(crate) requests: u64,
    /// The number of bytes received, for a relay at both ends together; 0 if not counted.
    pub(crate) bytes: u64,
    pub(crate) used: Used,
    /// `true` if requests and downloads ran at the same time, so that the CPU time belongs to both.
    pub(crate) mixed: bool,
    pub(crate) latencies: Latencies,
    /// The number of bytes of the files that are in the page cache after the measurement.
    pub(crate) cached_bytes: Option<u64>,
    /// The figure by which servers are compared under this workload.
    pub(crate) primary: Option<f64>,
}

/// A function that returns a figure of a sample.
pub(crate) type Figure = fn(&Sample) -> Option<f64>;

/// The condition that ends a measurement.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Extent {
    /// The duration `measure` has passed, after a duration `settle` that is not measured.
    Time { settle: Duration, measure: Duration },
    /// This many requests were completed.
    Requests(u64),
}

/// Calls `step`, which adds its results to the sample, until `extent` ends the measurement and at
/// least one request is complete.
pub(crate) fn measure(
    extent: Extent,
    meter: Meter,
    mut step: impl FnMut(&mut Sample) -> Result<()>,
) -> Result<Sample> {
    let (settle, time, requests) = match extent {
        Extent::Time { settle, measure } => (settle, measure, u64::MAX),
        Extent::Requests(requests) => (Duration::ZERO, Duration::MAX, requests),
    };
    let mut settling = Sample::default();
    let start = Instant::now();
    while start.elapsed() < settle {
        step(&mut settling)?;
    }
    let mut sample = Sample::default();
    let before = meter.usage();
    let start = Instant::now();
    while sample.requests < requests && (start.elapsed() < time || sample.requests == 0) {
        step(&mut sample)?;
    }
    sample.wall = start.elapsed();
    sample.used = before.until(&meter.usage());
    Ok(sample)
}

fn finite(number: f64) -> Option<f64> {
    Some(number).filter(|number| number.is_finite())
}

impl Sample {
    pub(crate) fn per_second(&self) -> Option<f64> {
        finite(self.requests as f64 / self.wall.as_secs_f64()).filter(|rate| *rate > 0.0)
    }

    /// Returns the requests per second of busy time of the server's core.
    pub(crate) fn per_core_second(&self) -> Option<f64> {
        finite(1e6 / self.core_us()?)
    }

    pub(crate) fn mib_per_second(&self) -> Option<f64> {
        finite(self.bytes as f64 / f64::from(1 << 20) / self.wall.as_secs_f64())
            .filter(|_| self.mixed || self.bytes > 0)
    }

    /// Returns the CPU seconds that the server's processes used per GB (10^9 bytes).
    pub(crate) fn process_s_per_gb(&self) -> Option<f64> {
        self.cost(self.used.process, self.bytes as f64 / 1e9)
    }

    /// Returns the busy seconds of the server's core per GB (10^9 bytes).
    pub(crate) fn core_s_per_gb(&self) -> Option<f64> {
        self.cost(self.used.core, self.bytes as f64 / 1e9)
    }

    /// Returns the CPU microseconds that the server's processes used per request.
    pub(crate) fn process_us(&self) -> Option<f64> {
        self.cost(self.used.process, self.requests as f64 / 1e6)
    }

    /// Returns the busy microseconds of the server's core per request.
    pub(crate) fn core_us(&self) -> Option<f64> {
        self.cost(self.used.core, self.requests as f64 / 1e6)
    }

    pub(crate) fn server_busy_percent(&self) -> Option<f64> {
        self.percent(self.used.core?)
    }

    pub(crate) fn load_busy_percent(&self) -> Option<f64> {
        self.percent(self.used.load_core?)
    }

    /// Returns the size of the cached part of the files as a percentage of the bytes received.
    pub(crate) fn cached_percent(&self) -> Option<f64> {
        finite(100.0 * self.cached_bytes? as f64 / self.bytes as f64)
    }

    pub(crate) fn p50_us(&self) -> Option<f64> {
        self.latencies.percentile_us(50.0)
    }

    pub(crate) fn p99_us(&self) -> Option<f64> {
        self.latencies.percentile_us(99.0)
    }

    pub(crate) fn p999_us(&self) -> Option<f64> {
        self.latencies.percentile_us(99.9)
    }

    pub(crate) fn primary(&self) -> Option<f64> {
        self.primary
    }

    fn percent(&self, busy: Duration) -> Option<f64> {
        finite(100.0 * busy.as_secs_f64() / self.wall.as_secs_f64())
    }

    fn cost(&self, time: Option<Duration>, amount: f64) -> Option<f64> {
        finite(time?.as_secs_f64() / amount).filter(|_| !self.mixed)
    }
}

/// Returns the smallest primary figure; `None` if a round has none.
pub(crate) fn primary_min(samples: &[Sample]) -> Option<f64> {
    primaries(samples).map(|spread| spread.min)
}

/// Returns the largest primary figure; `None` if a round has none.
pub(crate) fn primary_max(samples: &[Sample]) -> Option<f64> {
    primaries(samples).map(|spread| spread.max)
}

fn primaries(samples: &[Sample]) -> Option<Spread> {
    Spread::of(&samples.iter().map(Sample::primary).collect::<Option<Vec<_>>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(requests: u64, process_ms: u64, core_ms: u64) -> Sample {
        let ms = Duration::from_millis;
        let used = Used { process: Some(ms(process_ms)), core: Some(ms(core_ms)), load_core: None };
        let bytes = requests * 1_000_000;
        Sample { wall: ms(2000), requests, bytes, used, ..Sample::default() }
    }

    #[test]
    fn figures_are_per_second_core_gigabyte_and_request() {
        let one = sample(1000, 400, 500);
        assert_eq!(one.per_second(), Some(500.0));
        assert_eq!(one.per_core_second(), Some(2000.0));
        assert_eq!(one.process_s_per_gb(), Some(0.4));
        assert_eq!(one.core_s_per_gb(), Some(0.5));
        assert_eq!((one.process_us(), one.core_us()), (Some(400.0), Some(500.0)));
        assert_eq!((one.server_busy_percent(), one.load_busy_percent()), (Some(25.0), None));
        let mib = one.mib_per_second().unwrap();
        assert!((mib - 476.837).abs() < 0.001, "{mib}");
        let mixed = Sample { mixed: true, ..one };
        assert_eq!((mixed.core_us(), mixed.core_s_per_gb()), (None, None));
        assert!(mixed.per_second().is_some() && mixed.server_busy_percent().is_some());
    }

    #[test]
    fn unknown_figures_are_no_numbers() {
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
        assert_eq!(primary_min(&[]), None);
        let known = Sample { primary: Some(1.0), ..Sample::default() };
        assert_eq!(primary_min(&[known, nothing]), None, "one round is missing");
    }
}
