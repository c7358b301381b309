//! Computes the figures of one measurement, such as the CPU time per request. Performs no I/O.

use std::time::Duration;

use super::meter::Used;

/// The result of one measurement.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sample {
    pub(crate) wall: Duration,
    /// The number of requests; 0 if they were not counted.
    pub(crate) requests: u64,
    /// The number of bytes received, heads included.
    pub(crate) bytes: u64,
    pub(crate) used: Used,
    pub(crate) p50_us: Option<f64>,
    pub(crate) p99_us: Option<f64>,
    /// The part of the requested files that is in the page cache afterwards.
    pub(crate) cached_percent: Option<f64>,
    /// The number of descriptors that the server holds for an idle connection.
    pub(crate) descriptors: Option<f64>,
}

/// A figure by which servers are compared.
#[derive(Debug)]
pub(crate) struct Figure {
    /// The name in ratios.
    pub(crate) key: &'static str,
    pub(crate) value: fn(&Sample) -> Option<f64>,
}

pub(crate) const CPU: Figure = Figure { key: "cpu", value: Sample::cpu_us };
pub(crate) const CPU_PER_GB: Figure = Figure { key: "cpu_per_gb", value: Sample::cpu_s_per_gb };
pub(crate) const CORE: Figure = Figure { key: "core", value: Sample::core_us };
pub(crate) const RATE: Figure = Figure { key: "rate", value: Sample::per_second };
pub(crate) const TRANSFER_RATE: Figure = Figure { key: "rate", value: Sample::mib_per_second };
pub(crate) const P99: Figure = Figure { key: "p99", value: |sample| sample.p99_us };
pub(crate) const CACHE: Figure = Figure { key: "cache", value: |sample| sample.cached_percent };
pub(crate) const DESCRIPTORS: Figure =
    Figure { key: "descriptors", value: |sample| sample.descriptors };

fn positive(number: f64) -> Option<f64> {
    Some(number).filter(|number| number.is_finite() && *number > 0.0)
}

impl Sample {
    pub(crate) fn per_second(&self) -> Option<f64> {
        positive(self.requests as f64 / self.wall.as_secs_f64())
    }

    pub(crate) fn mib_per_second(&self) -> Option<f64> {
        positive(self.bytes as f64 / f64::from(1 << 20) / self.wall.as_secs_f64())
    }

    /// Returns the CPU seconds of the server's processes per GB (10^9 bytes).
    pub(crate) fn cpu_s_per_gb(&self) -> Option<f64> {
        positive(self.used.process?.as_secs_f64() / (self.bytes as f64 / 1e9))
    }

    /// Returns the CPU microseconds of the server's processes per request.
    pub(crate) fn cpu_us(&self) -> Option<f64> {
        positive(self.used.process?.as_secs_f64() * 1e6 / self.requests as f64)
    }

    /// Returns the busy microseconds of the server's core per request.
    pub(crate) fn core_us(&self) -> Option<f64> {
        positive(self.used.core?.as_secs_f64() * 1e6 / self.requests as f64)
    }

    pub(crate) fn load_busy_percent(&self) -> Option<f64> {
        positive(100.0 * self.used.load_core?.as_secs_f64() / self.wall.as_secs_f64())
    }
}

/// Returns a number of bytes in the short form used in names of ratios: `64`, `4k`, `1m`.
pub(crate) fn short(bytes: u64) -> String {
    match bytes {
        0 => "0".to_owned(),
        bytes if bytes.is_multiple_of(1 << 20) => format!("{}m", bytes >> 20),
        bytes if bytes.is_multiple_of(1 << 10) => format!("{}k", bytes >> 10),
        bytes => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_per_second_gigabyte_and_request() {
        let ms = Duration::from_millis;
        let used = Used { process: Some(ms(400)), core: Some(ms(500)), load_core: None };
        let (requests, bytes) = (1000, 1_000_000_000);
        let sample = Sample { wall: ms(2000), requests, bytes, used, ..Sample::default() };
        assert_eq!(sample.per_second(), Some(500.0));
        assert_eq!((sample.cpu_us(), sample.core_us()), (Some(400.0), Some(500.0)));
        assert_eq!((sample.cpu_s_per_gb(), sample.load_busy_percent()), (Some(0.4), None));
        let mib = sample.mib_per_second().unwrap();
        assert!((mib - 476.837).abs() < 0.001, "{mib}");
        let nothing = Sample::default();
        for figure in [CPU, CPU_PER_GB, CORE, RATE, TRANSFER_RATE, P99, CACHE] {
            assert_eq!((figure.value)(&nothing), None, "{}", figure.key);
        }
    }
}
