//! The table of the report. Pure.

use crate::log::group::{Cell, Group};
use crate::log::sample::Sample;
use crate::report::{Column, Row, Value};
use crate::stats::Spread;

pub(crate) const COLUMNS: &[Column] = &[
    Column::text("log", "log"),
    Column::number("writers", "writers", 0).ranked(1),
    Column::number("record_bytes", "record", 0).ranked(1),
    Column::number("appends_per_s", "appends/s", 0),
    Column::number("appends_per_s_min", "min", 0).ranked(5),
    Column::number("appends_per_s_max", "max", 0).ranked(5),
    Column::number("p50_us", "p50 µs", 0),
    Column::number("p99_us", "p99 µs", 0).ranked(1),
    Column::number("p999_us", "p99.9 µs", 0).ranked(2),
    Column::number("appends", "appends", 0).ranked(6),
    Column::number("cpu_us_per_append", "CPU µs", 1).ranked(2),
    Column::number("device_writes_per_append", "writes", 2).ranked(3),
    Column::number("device_bytes_per_append", "bytes", 0).ranked(3),
    Column::number("device_syncs_per_append", "syncs", 2).ranked(3),
    Column::number("device_reads_per_append", "reads", 3).ranked(4),
];
pub(crate) const BAR: &str = "appends_per_s";

/// What a row tells of the samples that count: the median.
const NUMBERS: &[fn(&Sample) -> Option<f64>] = &[
    |sample| sample.p50_us,
    |sample| sample.p99_us,
    |sample| sample.p999_us,
    |sample| Some(sample.appends),
    |sample| sample.each(sample.cpu_seconds).map(|seconds| seconds * 1e6),
    |sample| sample.each(sample.device_writes),
    |sample| sample.each(sample.device_bytes),
    |sample| sample.each(sample.device_syncs),
    |sample| sample.each(sample.device_reads),
];

/// A row for each contender of each group.
pub(crate) fn rows(groups: &[Group]) -> Vec<Row> {
    groups.iter().flat_map(|group| group.cells.iter().map(|cell| row(group, cell))).collect()
}

fn row(group: &Group, cell: &Cell) -> Row {
    let name = format!("{} bytes, {} writers", group.record_bytes, group.writers);
    let mut values: Vec<Value> = vec![
        cell.name.as_str().into(),
        (cell.writers as f64).into(),
        (group.record_bytes as f64).into(),
    ];
    let Some(rate) = group.spread(cell, |sample| Some(sample.rate())) else {
        let why = cell.why.as_deref().unwrap_or("no round counts: the floor moved");
        return Row::new("", &name, values).without_numbers(why);
    };
    let Spread { min, median, max } = rate;
    values.extend([median, min, max].map(Value::from));
    let median = |number| group.spread(cell, number).map(|spread| spread.median);
    values.extend(NUMBERS.iter().map(|number| Value::from(median(number))));
    Row::new("", &name, values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::group::tests::{cell, group};

    #[test]
    fn a_row_has_a_value_for_each_column_or_says_why_not() {
        let mut failed = cell("failed", &[0.0]);
        failed.why = Some("it was full".into());
        let rows = rows(&[group(16, vec![cell("haul", &[3.0, 1.0, 2.0]), failed])]);
        assert_eq!(rows[0].values.len(), COLUMNS.len());
        let at = |key| COLUMNS.iter().position(|column| column.key == key).unwrap();
        let of = |key| rows[0].values[at(key)].number();
        assert_eq!((of("writers"), of("record_bytes")), (Some(1.0), Some(4096.0)));
        assert_eq!((of("appends_per_s"), of("appends_per_s_min")), (Some(2.0), Some(1.0)));
        assert_eq!((of("appends_per_s_max"), of("appends")), (Some(3.0), Some(2.0)));
        assert_eq!(of("p50_us"), None);
        assert_eq!(rows[1].state.as_deref(), Some("it was full"));
    }
}
