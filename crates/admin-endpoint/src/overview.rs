//! The values of a server that the console draws and [`History`](crate::History) records.

use crate::exposition::MetricType;
use crate::latency::LatencyStats;

/// The unit of the values of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A number of things, such as requests.
    Count,
    /// Bytes.
    Bytes,
}

impl Unit {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Bytes => "bytes",
        }
    }
}

/// A value that changes over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Series {
    /// The title of its chart. Adjacent series with the same title share a chart.
    pub chart: &'static str,
    /// Its name in the legend of the chart.
    pub name: &'static str,
    /// [`MetricType::Counter`], of which the chart has the rate, or [`MetricType::Gauge`].
    pub kind: MetricType,
    /// The unit of its values.
    pub unit: Unit,
}

/// The values of a server at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overview {
    /// The name of the server, such as `haul files`.
    pub title: String,
    /// The series, which are the same in each overview of a server.
    pub series: &'static [Series],
    /// The value of each series.
    pub values: Vec<u64>,
    /// Histograms of latencies, with the titles of their heat maps.
    pub latencies: Vec<(&'static str, LatencyStats)>,
}

impl Series {
    /// Returns a series of the rate of a counter.
    #[must_use]
    pub const fn counter(chart: &'static str, name: &'static str, unit: Unit) -> Self {
        Self { chart, name, kind: MetricType::Counter, unit }
    }

    /// Returns a series of the values of a gauge.
    #[must_use]
    pub const fn gauge(chart: &'static str, name: &'static str, unit: Unit) -> Self {
        Self { chart, name, kind: MetricType::Gauge, unit }
    }
}
