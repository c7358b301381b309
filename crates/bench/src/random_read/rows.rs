//! Points, added up into rows and ratios. Pure.

use std::collections::BTreeMap;

use super::Point;
use super::ways::{Cache, Cell, Way};
use crate::report::{Column, Row, Value};
use crate::stats::{Latencies, Spread};

pub(super) const BAR: &str = "reads_per_s";

pub(super) const COLUMNS: &[Column] = &[
    Column::number("readers", "readers", 0),
    Column::text("way", "way"),
    Column::number("reads_per_s", "reads/s", 0),
    Column::number("reads_per_s_min", "min", 0).ranked(6),
    Column::number("reads_per_s_max", "max", 0).ranked(6),
    Column::number("mb_per_s", "MB/s", 1).ranked(5),
    Column::number("median_us", "µs", 1),
    Column::number("p99_us", "p99 µs", 1).ranked(1),
    Column::number("p999_us", "p99.9 µs", 1).ranked(2),
    Column::number("device_reads", "device reads", 2).ranked(3),
    Column::number("reads", "reads", 0).ranked(7),
];

/// All rounds of one cell.
#[derive(Debug, Clone, Default)]
pub(super) struct Sum {
    latencies: Latencies,
    rates: Vec<f64>,
    device_reads: Vec<f64>,
    not: Option<&'static str>,
}

impl Sum {
    pub(super) fn add(&mut self, point: &Point) {
        let reads = point.latencies.count() as f64;
        self.latencies.add(&point.latencies);
        self.rates.push(reads / point.time.as_secs_f64());
        self.device_reads.extend(point.device_reads.map(|requests| requests as f64 / reads));
    }

    pub(super) fn cannot(&mut self, why: &'static str) {
        self.not = Some(why);
    }

    fn rate(&self) -> Option<f64> {
        Spread::of(&self.rates).map(|spread| spread.median)
    }

    pub(super) fn row(&self, cell: &Cell, read_bytes: u64) -> Row {
        let (table, group) = (cell.cache.name(), cell.readers.to_string());
        let mut values = vec![Value::Number(cell.readers as f64), cell.way.name().into()];
        if let Some(why) = self.not {
            return Row::new(table, &group, values).without_numbers(why);
        }
        let rates = Spread::of(&self.rates);
        values.extend([
            Value::from(rates.map(|rates| rates.median)),
            rates.map(|rates| rates.min).into(),
            rates.map(|rates| rates.max).into(),
            rates.map(|rates| rates.median * read_bytes as f64 / 1e6).into(),
            self.latencies.percentile_us(50.0).into(),
            self.latencies.percentile_us(99.0).into(),
            self.latencies.percentile_us(99.9).into(),
            Spread::of(&self.device_reads).map(|spread| spread.median).into(),
            Value::Number(self.latencies.count() as f64),
        ]);
        Row::new(table, &group, values)
    }
}

/// What the ways come to with the most readers, and what more readers gain.
pub(super) fn ratios(cells: &[Cell], sums: &[Sum]) -> BTreeMap<String, f64> {
    let rate = |cell: &Cell| {
        let at = cells.iter().position(|other| other == cell)?;
        sums.get(at)?.rate().filter(|rate| *rate > 0.0)
    };
    let readers = || cells.iter().map(|cell| cell.readers);
    let (least, most) = (readers().min().unwrap_or(1), readers().max().unwrap_or(1));
    let mut ratios = BTreeMap::new();
    for cache in [Cache::Cold, Cache::Warm] {
        let of = |way, readers| rate(&Cell { cache, readers, way });
        let name = cache.name();
        for (what, a, b) in [
            (
                format!("shared_vs_locked_{most}_{name}"),
                (Way::SharedPread, most),
                (Way::LockedSeek, most),
            ),
            (format!("ring_vs_shared_{most}_{name}"), (Way::Ring, most), (Way::SharedPread, most)),
            (
                format!("own_vs_shared_{most}_{name}"),
                (Way::OwnPread, most),
                (Way::SharedPread, most),
            ),
            (
                format!("shared_{most}_vs_{least}_{name}"),
                (Way::SharedPread, most),
                (Way::SharedPread, least),
            ),
        ] {
            if let Some((a, b)) = of(a.0, a.1).zip(of(b.0, b.1)) {
                ratios.insert(what, a / b);
            }
        }
    }
    ratios
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::ways::cells;
    use super::*;
    use crate::host::Host;
    use crate::report::Report;

    fn sum(reads: u64) -> Sum {
        let mut latencies = Latencies::default();
        (0..reads).for_each(|_| latencies.record(Duration::from_micros(100)));
        let mut sum = Sum::default();
        let time = Duration::from_secs(1);
        sum.add(&Point { time, latencies, device_reads: Some(2 * reads) });
        sum
    }

    #[test]
    fn a_row_has_rate_times_and_requests_for_one_read() {
        let cell = cells(&[4])[1];
        let row = sum(500).row(&cell, 4096);
        let report = Report::new("random-read", Host::default(), COLUMNS, BAR);
        assert_eq!((row.values.len(), row.table.as_str()), (COLUMNS.len(), "cold"));
        for (key, expected) in
            [("readers", 4.0), ("reads_per_s", 500.0), ("mb_per_s", 2.048), ("device_reads", 2.0)]
        {
            let number = report.value(&row, key).and_then(Value::number).unwrap();
            assert!((number - expected).abs() < 1e-9, "{key}: {number}");
        }
        let mut not = Sum::default();
        not.cannot("no direct I/O here");
        assert_eq!(not.row(&cell, 4096).state.as_deref(), Some("no direct I/O here"));
    }

    #[test]
    fn ratios_are_those_with_the_most_readers_and_leave_out_what_was_not_measured() {
        let cells = cells(&[1, 16]);
        let mut sums: Vec<_> = [10, 10, 10, 10, 160, 80, 40, 320].map(sum).into();
        sums.resize_with(cells.len(), Sum::default);
        let expected = [
            ("own_vs_shared_16_cold", 0.5),
            ("ring_vs_shared_16_cold", 2.0),
            ("shared_16_vs_1_cold", 16.0),
            ("shared_vs_locked_16_cold", 4.0),
        ];
        let expected = expected.map(|(name, ratio)| (name.to_owned(), ratio));
        assert_eq!(ratios(&cells, &sums), BTreeMap::from(expected));
    }
}
