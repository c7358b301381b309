//! What many timed reads come to, round by round. Pure.

use std::time::Duration;

use crate::report::Value;
use crate::stats::{Latencies, Spread};

/// What one measurement came to.
#[derive(Debug, Default)]
pub(crate) struct Point {
    pub(crate) time: Duration,
    pub(crate) latencies: Latencies,
    /// Read requests of the device, whoever made them.
    pub(crate) device_reads: Option<u64>,
}

/// All rounds of one way.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sum {
    pub(crate) latencies: Latencies,
    rates: Vec<f64>,
    device_reads: Vec<f64>,
    /// Why there is nothing.
    pub(crate) not: Option<&'static str>,
}

impl Sum {
    pub(crate) fn add(&mut self, point: &Point) {
        let reads = point.latencies.count() as f64;
        self.latencies.add(&point.latencies);
        self.rates.push(reads / point.time.as_secs_f64());
        self.device_reads.extend(point.device_reads.map(|requests| requests as f64 / reads));
    }

    pub(crate) fn cannot(&mut self, why: &'static str) {
        self.not = Some(why);
    }

    /// Reads a second.
    pub(crate) fn rates(&self) -> Option<Spread> {
        Spread::of(&self.rates)
    }

    /// Their median, if there were any.
    pub(crate) fn rate(&self) -> Option<f64> {
        self.rates().map(|rates| rates.median).filter(|rate| *rate > 0.0)
    }

    /// The median, the least and the most of the rates.
    pub(crate) fn rate_values(&self) -> [Value; 3] {
        let rates = self.rates();
        [
            rates.map(|rates| rates.median).into(),
            rates.map(|rates| rates.min).into(),
            rates.map(|rates| rates.max).into(),
        ]
    }

    /// What `percent` of the reads do not take longer than.
    pub(crate) fn percentile_us(&self, percent: f64) -> Value {
        self.latencies.percentile_us(percent).into()
    }

    /// Requests of the device for one read.
    pub(crate) fn device_reads(&self) -> Value {
        Spread::of(&self.device_reads).map(|spread| spread.median).into()
    }

    /// How many reads there were.
    pub(crate) fn count(&self) -> Value {
        Value::Number(self.latencies.count() as f64)
    }
}
