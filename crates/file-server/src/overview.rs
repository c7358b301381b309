//! The values of a file server that its console draws.

use haul_admin_endpoint::Unit::{Bytes, Count};
use haul_admin_endpoint::{Overview, Series};

use crate::file::tier::Tier;
use crate::metrics::Stats;

const SERIES: &[Series] = &[
    Series::counter("Requests", "2xx", Count),
    Series::counter("Requests", "3xx", Count),
    Series::counter("Requests", "4xx", Count),
    Series::counter("Requests", "5xx", Count),
    Series::counter("Bytes sent", "memory", Bytes),
    Series::counter("Bytes sent", "resident", Bytes),
    Series::counter("Bytes sent", "read", Bytes),
    Series::counter("Bytes sent", "direct", Bytes),
    Series::counter("Bytes sent", "uncached", Bytes),
    Series::gauge("Connections", "open", Count),
    Series::gauge("Disk jobs waiting", "jobs", Count),
    Series::gauge("Cache", "cached", Bytes),
    Series::counter("Incomplete responses", "ended early", Count),
    Series::counter("Incomplete responses", "client too slow", Count),
];

impl Stats {
    /// Returns the values that the console draws.
    pub(crate) fn to_overview(&self) -> Overview {
        let class = |class: u16| {
            let statuses = self.statuses.iter().filter(|(status, _)| status / 100 == class);
            statuses.map(|(_, count)| count).sum()
        };
        let mut values: Vec<u64> = (2..=5).map(class).collect();
        values.extend(Tier::ALL.map(|tier| self.tier(tier).1));
        values.extend([self.connections_open, self.disk_jobs_waiting, self.cached_bytes]);
        values.extend([self.cut_short, self.too_slow]);
        let latencies = vec![("Latency", self.latency.clone())];
        Overview { title: "haul files".to_owned(), series: SERIES, values, latencies }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_series_has_its_value() {
        let stats = Stats {
            statuses: vec![(200, 1), (206, 2), (404, 4), (503, 8)],
            tiers: vec![(Tier::Read, 1, 100)],
            too_slow: 7,
            ..Stats::default()
        };
        let overview = stats.to_overview();
        assert_eq!(overview.values.len(), SERIES.len());
        let value = |name: &str| {
            let at = SERIES.iter().position(|series| series.name == name).unwrap();
            overview.values[at]
        };
        assert_eq!(["2xx", "3xx", "4xx", "5xx"].map(value), [3, 0, 4, 8]);
        assert_eq!((value("read"), value("client too slow")), (100, 7));
        for (tier, series) in Tier::ALL.iter().zip(&SERIES[4..]) {
            assert_eq!(tier.name(), series.name);
        }
    }
}
