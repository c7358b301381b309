//! Points, added up into rows and ratios. Pure.

use std::collections::BTreeMap;

use super::{Cell, Options, Way};
use crate::reads::Sum;
use crate::report::{Column, Row, Value};

pub(super) const BAR: &str = "reads_per_s";

pub(super) const COLUMNS: &[Column] = &[
    Column::number("data_per_memory", "data/memory", 2),
    Column::text("way", "way"),
    Column::number("data_mib", "data MiB", 0).ranked(5),
    Column::number("reads_per_s", "reads/s", 0),
    Column::number("reads_per_s_min", "min", 0).ranked(6),
    Column::number("reads_per_s_max", "max", 0).ranked(6),
    Column::number("median_us", "µs", 1).ranked(1),
    Column::number("p99_us", "p99 µs", 1).ranked(1),
    Column::number("device_reads", "device reads", 2).ranked(3),
    Column::number("reads", "reads", 0).ranked(7),
];

pub(super) fn row(sum: &Sum, cell: &Cell, options: &Options) -> Row {
    let mut values = vec![Value::Number(cell.percent as f64 / 100.0), cell.way.name().into()];
    let group = cell.percent.to_string();
    if let Some(why) = sum.not {
        return Row::new("", &group, values).without_numbers(why);
    }
    values.push(Value::Number((options.data_bytes(cell.percent) >> 20) as f64));
    values.extend(sum.rate_values());
    values.extend([
        sum.percentile_us(50.0),
        sum.percentile_us(99.0),
        sum.device_reads(),
        sum.count(),
    ]);
    Row::new("", &group, values)
}

/// For each amount of data, how many more reads a second are direct or uncached than through the
/// page cache, and from where on direct ones are more.
pub(super) fn ratios(cells: &[Cell], sums: &[Sum]) -> BTreeMap<String, f64> {
    let rate = |percent: u64, way: Way| {
        sums[cells.iter().position(|cell| *cell == Cell { percent, way })?].rate()
    };
    let mut ratios = BTreeMap::new();
    let mut direct = BTreeMap::new();
    for percent in cells.iter().map(|cell| cell.percent) {
        let Some(cached) = rate(percent, Way::PageCache) else { continue };
        for (name, way) in [("direct", Way::Direct), ("uncached", Way::Uncached)] {
            if let Some(rate) = rate(percent, way) {
                ratios.insert(format!("{name}_vs_cached_{percent}_percent"), rate / cached);
                if way == Way::Direct {
                    direct.insert(percent, rate / cached);
                }
            }
        }
    }
    if let Some(percent) = crossover(&direct) {
        ratios.insert("crossover".to_owned(), percent as f64 / 100.0);
    }
    ratios
}

/// The least key from which on all ratios are above one.
fn crossover(ratios: &BTreeMap<u64, f64>) -> Option<u64> {
    ratios.iter().rev().take_while(|(_, ratio)| **ratio > 1.0).last().map(|(percent, _)| *percent)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::reads::Point;
    use crate::stats::Latencies;

    fn sum(reads: u64) -> Sum {
        let mut latencies = Latencies::default();
        (0..reads).for_each(|_| latencies.record(Duration::from_micros(100)));
        let mut sum = Sum::default();
        sum.add(&Point { time: Duration::from_secs(1), latencies, device_reads: Some(reads) });
        sum
    }

    #[test]
    fn the_crossover_is_where_direct_reads_win_for_good() {
        for (ratios, expected) in [
            (&[(50, 0.1), (100, 0.9), (200, 1.2), (400, 1.3)][..], Some(200)),
            (&[(50, 1.2), (100, 0.9), (200, 1.1)], Some(200)),
            (&[(50, 0.2), (100, 0.9)], None),
            (&[], None),
        ] {
            assert_eq!(crossover(&ratios.iter().copied().collect()), expected, "{ratios:?}");
        }
    }

    #[test]
    fn each_amount_of_data_has_its_ratios_and_its_rows() {
        let cells: Vec<_> = [50, 200]
            .into_iter()
            .flat_map(|percent| Way::ALL.map(|way| Cell { percent, way }))
            .collect();
        let sums: Vec<_> = [800, 100, 200, 100, 50, 150].map(sum).into();
        let expected = [
            ("crossover", 2.0),
            ("direct_vs_cached_200_percent", 1.5),
            ("direct_vs_cached_50_percent", 0.25),
            ("uncached_vs_cached_200_percent", 0.5),
            ("uncached_vs_cached_50_percent", 0.125),
        ];
        let expected = expected.map(|(name, ratio)| (name.to_owned(), ratio));
        assert_eq!(ratios(&cells, &sums), BTreeMap::from(expected));
        let one = row(&sums[0], &cells[0], &Options::new("d"));
        assert_eq!((one.values.len(), &one.values[0]), (COLUMNS.len(), &Value::Number(0.5)));
    }
}
