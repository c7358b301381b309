//! Measurements, added up into rows and ratios. Pure.

use std::collections::BTreeMap;

use super::{Point, Way};
use crate::report::{Column, Row, Value};
use crate::stats::{Latencies, Spread};

pub(super) const BAR: &str = "p99_us";

pub(super) const COLUMNS: &[Column] = &[
    Column::text("way", "way"),
    Column::number("reads_per_s", "hot reads/s", 0),
    Column::number("reads_per_s_min", "min", 0).ranked(6),
    Column::number("reads_per_s_max", "max", 0).ranked(6),
    Column::number("median_us", "µs", 1).ranked(1),
    Column::number("p99_us", "p99 µs", 1),
    Column::number("p999_us", "p99.9 µs", 1).ranked(2),
    Column::number("kept_percent", "% kept", 1).ranked(3),
    Column::number("scan_mb_per_s", "scan MB/s", 0).ranked(4),
    Column::number("reads", "reads", 0).ranked(7),
];

/// All rounds of one way.
#[derive(Debug, Clone, Default)]
pub(super) struct Sum {
    latencies: Latencies,
    rates: Vec<f64>,
    kept: Vec<f64>,
    scan_rates: Vec<f64>,
    not: Option<&'static str>,
}

impl Sum {
    pub(super) fn add(&mut self, point: &Point) {
        let seconds = point.time.as_secs_f64();
        self.latencies.add(&point.latencies);
        self.rates.push(point.latencies.count() as f64 / seconds);
        self.kept.push(point.kept);
        self.scan_rates.push(point.scanned_bytes as f64 / seconds);
    }

    pub(super) fn cannot(&mut self, why: &'static str) {
        self.not = Some(why);
    }

    fn rate(&self) -> Option<f64> {
        Spread::of(&self.rates).map(|spread| spread.median).filter(|rate| *rate > 0.0)
    }

    pub(super) fn row(&self, way: Way) -> Row {
        let mut values: Vec<Value> = vec![way.name().into()];
        if let Some(why) = self.not {
            return Row::new("", "", values).without_numbers(why);
        }
        let rates = Spread::of(&self.rates);
        let median = |numbers: &[f64], unit: f64| {
            Value::from(Spread::of(numbers).map(|spread| spread.median / unit))
        };
        values.extend([
            Value::from(rates.map(|rates| rates.median)),
            rates.map(|rates| rates.min).into(),
            rates.map(|rates| rates.max).into(),
            self.latencies.percentile_us(50.0).into(),
            self.latencies.percentile_us(99.0).into(),
            self.latencies.percentile_us(99.9).into(),
            median(&self.kept, 0.01),
            median(&self.scan_rates, 1e6),
            Value::Number(self.latencies.count() as f64),
        ]);
        Row::new("", "", values)
    }
}

/// How many times more hot reads a second each way does than the page cache alone, all of them
/// beside a scan, and how many times longer their 99th percentile is.
pub(super) fn ratios(sums: &[Sum]) -> BTreeMap<String, f64> {
    let of = |way: Way| Way::ALL.iter().position(|one| *one == way).and_then(|at| sums.get(at));
    let Some(alone) = of(Way::PageCache) else { return BTreeMap::new() };
    let mut ratios = BTreeMap::new();
    for (name, way) in [
        ("app_cache", Way::AppCache),
        ("scan_uncached", Way::ScanUncached),
        ("scan_direct", Way::ScanDirect),
    ] {
        let Some(sum) = of(way) else { continue };
        if let Some((a, b)) = sum.rate().zip(alone.rate()) {
            ratios.insert(format!("{name}_vs_page_cache"), a / b);
        }
        let p99 = |sum: &Sum| sum.latencies.percentile_us(99.0);
        if let Some((a, b)) = p99(sum).zip(p99(alone)) {
            ratios.insert(format!("{name}_p99_vs_page_cache"), a / b);
        }
    }
    ratios
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn sum(reads: u64, us: u64) -> Sum {
        let mut latencies = Latencies::default();
        (0..reads).for_each(|_| latencies.record(Duration::from_micros(us)));
        let mut sum = Sum::default();
        let (time, scanned_bytes) = (Duration::from_secs(2), 8_000_000);
        sum.add(&Point { time, latencies, scanned_bytes, kept: 0.5 });
        sum
    }

    #[test]
    fn ways_are_compared_with_the_page_cache_alone() {
        let sums = [sum(900, 10), sum(100, 400), sum(800, 20), sum(200, 100), Sum::default()];
        let ratios = ratios(&sums);
        let near = |key: &str, expected: f64| {
            assert!((ratios[key] / expected - 1.0).abs() < 0.01, "{key}: {ratios:?}");
        };
        near("app_cache_vs_page_cache", 8.0);
        near("app_cache_p99_vs_page_cache", 0.05);
        near("scan_uncached_vs_page_cache", 2.0);
        assert!(!ratios.contains_key("scan_direct_vs_page_cache"));
        let row = sums[1].row(Way::PageCache);
        assert_eq!(row.values.len(), COLUMNS.len());
        assert_eq!(row.values[7..9], [Value::Number(50.0), Value::Number(4.0)]);
    }
}
