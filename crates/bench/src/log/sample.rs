//! Holds the figures of one measurement, and passes them between processes as JSON.

use serde_json::{Value as Json, json};

use haul_measure::Latencies;

/// The figures of one measurement of a contender; missing numbers are `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    /// The number of records appended. Each record was durable when its call returned.
    pub appends: f64,
    /// The duration of the measurement in seconds.
    pub seconds: f64,
    /// The median latency of an append in microseconds.
    pub p50_us: Option<f64>,
    /// The 99th percentile of the latencies in microseconds.
    pub p99_us: Option<f64>,
    /// The 99.9th percentile of the latencies in microseconds.
    pub p999_us: Option<f64>,
    /// The CPU time of the process in seconds, in user and kernel mode.
    pub cpu_seconds: Option<f64>,
    /// Read requests to the device, including those of other programs.
    pub device_reads: Option<f64>,
    /// Write requests to the device, not counting empty ones that only flush its write cache.
    pub device_writes: Option<f64>,
    /// Bytes written to the device.
    pub device_bytes: Option<f64>,
    /// Requests to flush the write cache of the device.
    pub device_syncs: Option<f64>,
}

impl Sample {
    /// Returns the appends per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.appends / self.seconds
    }

    /// Returns `number` divided by the number of appends.
    #[must_use]
    pub fn each(&self, number: Option<f64>) -> Option<f64> {
        number.map(|number| number / self.appends)
    }

    pub(crate) fn with_latencies(self, times: &Latencies) -> Self {
        Self {
            p50_us: times.percentile_us(50.0),
            p99_us: times.percentile_us(99.0),
            p999_us: times.percentile_us(99.9),
            ..self
        }
    }

    /// Returns one line of JSON for [`Sample::from_json`].
    #[must_use]
    pub fn to_json(&self) -> String {
        json!({
            "appends": self.appends, "seconds": self.seconds, "cpu_seconds": self.cpu_seconds,
            "p50_us": self.p50_us, "p99_us": self.p99_us, "p999_us": self.p999_us,
            "device_reads": self.device_reads, "device_writes": self.device_writes,
            "device_bytes": self.device_bytes, "device_syncs": self.device_syncs,
        })
        .to_string()
    }

    /// Parses the JSON of [`Sample::to_json`]; `None` if it is invalid.
    #[must_use]
    pub fn from_json(text: &str) -> Option<Self> {
        let json: Json = serde_json::from_str(text).ok()?;
        let number = |key: &str| json[key].as_f64();
        Some(Self {
            appends: number("appends")?,
            seconds: number("seconds")?,
            p50_us: number("p50_us"),
            p99_us: number("p99_us"),
            p999_us: number("p999_us"),
            cpu_seconds: number("cpu_seconds"),
            device_reads: number("device_reads"),
            device_writes: number("device_writes"),
            device_bytes: number("device_bytes"),
            device_syncs: number("device_syncs"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_every_number() {
        let sample = Sample {
            appends: 1000.0,
            seconds: 0.5,
            p50_us: Some(1.25),
            p99_us: Some(2.25),
            p999_us: Some(3.25),
            cpu_seconds: None,
            device_reads: Some(4.25),
            device_writes: Some(5.25),
            device_bytes: Some(6.25),
            device_syncs: Some(7.25),
        };
        let json = sample.to_json();
        assert!(!json.contains('\n'));
        assert_eq!(Sample::from_json(&json), Some(sample));
        for text in ["", "[]", "panicked", r#"{"appends": 1}"#] {
            assert_eq!(Sample::from_json(text), None, "{text}");
        }
    }
}
