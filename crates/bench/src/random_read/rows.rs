//! Points, added up into rows and ratios. Pure.

use std::collections::BTreeMap;

use super::ways::{Cache, Cell, Way};
use crate::reads::Sum;
use crate::report::{Column, Row, Value};

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

pub(super) fn row(sum: &Sum, cell: &Cell, read_bytes: u64) -> Row {
    let (table, group) = (cell.cache.name(), cell.readers.to_string());
    let mut values = vec![Value::Number(cell.readers as f64), cell.way.name().into()];
    if let Some(why) = sum.not {
        return Row::new(table, &group, values).without_numbers(why);
    }
    values.extend(sum.rate_values());
    values.extend([
        Value::from(sum.rate().map(|rate| rate * read_bytes as f64 / 1e6)),
        sum.percentile_us(50.0),
        sum.percentile_us(99.0),
        sum.percentile_us(99.9),
        sum.device_reads(),
        sum.count(),
    ]);
    Row::new(table, &group, values)
}

/// What the ways come to with the most readers, and what more readers gain.
pub(super) fn ratios(cells: &[Cell], sums: &[Sum]) -> BTreeMap<String, f64> {
    let rate = |cell: &Cell| {
        let at = cells.iter().position(|other| other == cell)?;
        sums.get(at)?.rate()
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
    use crate::reads::Point;
    use crate::report::Report;
    use crate::stats::Latencies;

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
        let one = row(&sum(500), &cell, 4096);
        let report = Report::new("random-read", Host::default(), COLUMNS, BAR);
        assert_eq!((one.values.len(), one.table.as_str()), (COLUMNS.len(), "cold"));
        for (key, expected) in
            [("readers", 4.0), ("reads_per_s", 500.0), ("mb_per_s", 2.048), ("device_reads", 2.0)]
        {
            let number = report.value(&one, key).and_then(Value::number).unwrap();
            assert!((number - expected).abs() < 1e-9, "{key}: {number}");
        }
        let mut not = Sum::default();
        not.cannot("no direct I/O here");
        assert_eq!(row(&not, &cell, 4096).state.as_deref(), Some("no direct I/O here"));
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
