//! Measurements, added up into rows and ratios. Pure.

use std::collections::BTreeMap;

use haul_disk_sim::{Counters, Nanos};

use super::solid::Written;
use super::spinning::Swept;
use super::ways::{Cell, Index, Way};
use crate::log::Sample;
use crate::report::{Column, Row, Value};
use crate::stats::Spread;

pub(super) const BAR: &str = "per_s";

pub(super) const COLUMNS: &[Column] = &[
    Column::text("way", "way"),
    Column::text("index", "index"),
    Column::number("batch", "batch", 0),
    Column::number("writers", "writers", 0).ranked(1),
    Column::number("records", "records", 0).ranked(4),
    Column::number("per_s", "records/s", 0),
    Column::number("per_s_min", "min", 0).ranked(6),
    Column::number("per_s_max", "max", 0).ranked(6),
    Column::number("acknowledged_per_s", "acknowledged/s", 0).ranked(1),
    Column::number("service_s", "service s", 2),
    Column::number("elapsed_s", "elapsed s", 2).ranked(3),
    Column::number("p50_us", "p50 µs", 0).ranked(2),
    Column::number("p99_us", "p99 µs", 0).ranked(3),
    Column::number("cpu_us", "CPU µs", 1).ranked(2),
    Column::number("reads", "reads", 3).ranked(2),
    Column::number("writes", "writes", 3).ranked(2),
    Column::number("bytes", "B moved", 0).ranked(4),
    Column::number("syncs", "syncs", 4).ranked(3),
    Column::number("seeks", "seeks", 3).ranked(2),
    Column::number("travel_cylinders", "cylinders", 0).ranked(3),
];

/// The numbers of one measurement, by column.
pub(super) type Facts = BTreeMap<&'static str, f64>;

/// All rounds of one row.
#[derive(Debug, Clone, Default)]
pub(super) struct Line {
    pub(super) table: String,
    pub(super) group: String,
    pub(super) way: String,
    pub(super) index: String,
    pub(super) facts: Vec<Facts>,
    pub(super) why: Option<String>,
}

impl Line {
    pub(super) fn of(table: &str, cell: Cell) -> Self {
        Self {
            table: table.to_owned(),
            group: cell.batch.to_string(),
            way: cell.way.name().to_owned(),
            index: cell.index.name().to_owned(),
            ..Self::default()
        }
    }

    fn spread(&self, key: &str) -> Option<Spread> {
        Spread::of(
            &self.facts.iter().filter_map(|facts| facts.get(key).copied()).collect::<Vec<_>>(),
        )
    }

    pub(super) fn median(&self, key: &str) -> Option<f64> {
        self.spread(key).map(|spread| spread.median)
    }

    pub(super) fn row(&self) -> Row {
        let number = |key: &str| match (key.strip_suffix("_min"), key.strip_suffix("_max")) {
            (Some(of), _) => self.spread(of).map(|spread| spread.min),
            (_, Some(of)) => self.spread(of).map(|spread| spread.max),
            _ => self.median(key),
        };
        let value = |column: &Column| match column.key {
            "way" => self.way.as_str().into(),
            "index" => self.index.as_str().into(),
            key => Value::from(number(key)),
        };
        let row = Row::new(&self.table, &self.group, COLUMNS.iter().map(value).collect());
        match &self.why {
            Some(why) if self.facts.is_empty() => row.without_numbers(why),
            _ => row,
        }
    }
}

fn of_cell(cell: Cell, records: usize) -> Facts {
    // One batch has all of them, however long it could be.
    let batch = cell.batch.min(records);
    Facts::from([("batch", batch as f64), ("writers", 1.0), ("records", records as f64)])
}

/// By the drive's own clock.
pub(super) fn swept(cell: Cell, swept: &Swept, time_scale: f64) -> Facts {
    let Swept { records, asked, elapsed } = swept;
    let (count, service_s) = (*records as f64, asked.service_ns() as f64 / 1e9);
    let mut facts = of_cell(cell, *records);
    facts.extend([
        ("per_s", count / service_s),
        ("service_s", service_s),
        ("reads", asked.reads as f64 / count),
        ("writes", asked.writes as f64 / count),
        ("bytes", (asked.bytes_read + asked.bytes_written) as f64 / count),
        ("syncs", asked.syncs as f64 / count),
        ("seeks", asked.seeks as f64 / count),
        ("travel_cylinders", asked.seek_cylinders as f64),
    ]);
    if time_scale > 0.0 {
        facts.insert("elapsed_s", elapsed.as_secs_f64() / time_scale);
    }
    facts
}

/// The bound, as a line beside the ways.
pub(super) fn bound(table: &str, cell: Cell, records: usize, bound_ns: Nanos) -> Line {
    let service_s = bound_ns as f64 / 1e9;
    let mut facts = of_cell(cell, records);
    facts.extend([("per_s", records as f64 / service_s), ("service_s", service_s)]);
    Line { way: BOUND.to_owned(), facts: vec![facts], ..Line::of(table, cell) }
}

/// By the clock.
pub(super) fn written(cell: Cell, written: &Written) -> Facts {
    let Written { records, elapsed, asked } = written;
    let count = *records as f64;
    let mut facts = of_cell(cell, *records);
    facts.extend([("per_s", count / elapsed.as_secs_f64()), ("elapsed_s", elapsed.as_secs_f64())]);
    if let Some(asked) = asked {
        facts.extend([
            ("reads", asked.reads as f64 / count),
            ("writes", asked.writes as f64 / count),
            ("bytes", (asked.read_bytes + asked.written_bytes) as f64 / count),
            ("syncs", asked.syncs as f64 / count),
        ]);
    }
    facts
}

/// Pages on a simulated drive: by its own clock, to the end.
pub(super) fn pages_swept(writers: usize, sample: &Sample, asked: &Counters) -> Facts {
    let (count, service_s) = (sample.appends, asked.service_ns() as f64 / 1e9);
    Facts::from([
        ("writers", writers as f64),
        ("records", count),
        ("per_s", count / service_s),
        ("service_s", service_s),
        ("reads", asked.reads as f64 / count),
        ("writes", asked.writes as f64 / count),
        ("bytes", (asked.bytes_read + asked.bytes_written) as f64 / count),
        ("syncs", asked.syncs as f64 / count),
        ("seeks", asked.seeks as f64 / count),
        ("travel_cylinders", asked.seek_cylinders as f64),
    ])
}

/// Pages: what was put off counts, in time and in requests.
pub(super) fn pages(writers: usize, sample: &Sample) -> Facts {
    let sum = |one: Option<f64>, other: Option<f64>| Some(one? + other.unwrap_or(0.0));
    let numbers = [
        ("writers", Some(writers as f64)),
        ("records", Some(sample.appends)),
        ("per_s", Some(sample.rate_to_the_end())),
        ("acknowledged_per_s", Some(sample.rate())),
        ("elapsed_s", sum(Some(sample.seconds), sample.finish_seconds)),
        ("p50_us", sample.p50_us),
        ("p99_us", sample.p99_us),
        (
            "cpu_us",
            sample.each(sum(sample.cpu_seconds, sample.finish_cpu_seconds)).map(|s| s * 1e6),
        ),
        ("reads", sample.each(sample.device_reads)),
        ("writes", sample.each(sum(sample.device_writes, sample.finish_writes))),
        ("bytes", sample.each(sample.device_bytes)),
        ("syncs", sample.each(sample.device_syncs)),
    ];
    numbers.into_iter().filter_map(|(key, number)| Some((key, number?))).collect()
}

/// How the bound is called.
pub(super) const BOUND: &str = "bound";
/// How the page file is called.
pub(super) const PAGE_FILE: &str = "page-file";

/// Of a table of ways: ours beside the others, for the longest batch, and for each.
pub(super) fn ratios_of_ways(prefix: &str, lines: &[Line]) -> Vec<(String, f64)> {
    let mut batches: Vec<f64> = lines.iter().filter_map(|line| line.median("batch")).collect();
    batches.sort_by(f64::total_cmp);
    batches.dedup();
    let mut ratios = Vec::new();
    for batch in &batches {
        let rate = |way: &str, index: Index| {
            let is_it = |line: &&Line| {
                line.way == way
                    && line.index == index.name()
                    && line.median("batch") == Some(*batch)
            };
            lines.iter().find(is_it)?.median("per_s")
        };
        let alone = |way: Way| rate(way.name(), Index::None);
        let mixed = |way: Way| rate(way.name(), Index::Mixed);
        let (merged, apart) = (alone(Way::Merged), rate(Way::Merged.name(), Index::Apart));
        let pairs = [
            ("sorted_vs_random", merged, alone(Way::Random)),
            ("sorted_vs_random_direct", merged, alone(Way::Direct)),
            ("merged_vs_sorted", merged, alone(Way::Sorted)),
            ("merged_vs_sorted_direct", merged, alone(Way::SortedDirect)),
            ("bound_vs_sorted", rate(BOUND, Index::None), merged),
            // Sorted alike: what remains is the index in between.
            ("apart_vs_mixed", apart, mixed(Way::SortedDirect)),
            ("apart_vs_mixed_cached", apart, mixed(Way::Sorted)),
            ("apart_vs_mixed_random", apart, mixed(Way::Random)),
            ("apart_vs_mixed_random_direct", apart, mixed(Way::Direct)),
            ("apart_vs_mixed_merged", apart, mixed(Way::Merged)),
        ];
        for (name, ours, other) in pairs {
            let Some((ours, other)) = ours.zip(other).filter(|pair| pair.1 > 0.0) else { continue };
            ratios.push((format!("{prefix}_{name}_batch_{batch}"), ours / other));
            if Some(batch) == batches.last() {
                ratios.push((format!("{prefix}_{name}"), ours / other));
            }
        }
    }
    ratios
}

/// Of the table of pages: the page file beside each of the others, whose best form counts.
pub(super) fn ratios_of_pages(prefix: &str, lines: &[Line], writers: usize) -> Vec<(String, f64)> {
    let of = |line: &Line, key: &str| {
        (line.median("writers") == Some(writers as f64)).then(|| line.median(key)).flatten()
    };
    let family = |line: &Line| line.way.split('/').next().unwrap_or(&line.way).replace('-', "_");
    let mut best: BTreeMap<String, f64> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.way != PAGE_FILE) {
        let Some(rate) = of(line, "per_s") else { continue };
        let known = best.entry(family(line)).or_insert(rate);
        *known = known.max(rate);
    }
    let ours =
        |key| lines.iter().filter(|line| line.way == PAGE_FILE).find_map(|line| of(line, key));
    let mut ratios = Vec::new();
    for (other, rate) in best.into_iter().filter(|(_, rate)| *rate > 0.0) {
        for (suffix, key) in [("", "per_s"), ("_acknowledged", "acknowledged_per_s")] {
            let ratio = ours(key).map(|ours| ours / rate);
            ratios.extend(
                ratio.map(|it| (format!("{prefix}page_file_vs_{other}_{writers}w{suffix}"), it)),
            );
        }
    }
    ratios
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;
    use crate::report::Report;

    fn line(way: &str, index: Index, batch: f64, rates: &[f64]) -> Line {
        let facts =
            |rate: &f64| Facts::from([("batch", batch), ("writers", 16.0), ("per_s", *rate)]);
        let cell = Cell { way: Way::Random, index, batch: 1 };
        let facts = rates.iter().map(facts).collect();
        Line { way: way.to_owned(), facts, ..Line::of("t", cell) }
    }

    #[test]
    fn a_row_has_the_median_of_each_number_and_the_ends_of_the_rate() {
        let row = line("random", Index::None, 5.0, &[3.0, 1.0, 2.0]).row();
        let report = Report::new("random-write", Host::default(), COLUMNS, BAR);
        let number = |key| report.value(&row, key).and_then(Value::number);
        assert_eq!(row.values.len(), COLUMNS.len());
        assert_eq!([number("per_s"), number("per_s_min")], [Some(2.0), Some(1.0)]);
        assert_eq!([number("per_s_max"), number("service_s")], [Some(3.0), None]);
        let failed = Line { why: Some("no room".to_owned()), ..line("x", Index::None, 1.0, &[]) };
        assert_eq!(failed.row().state.as_deref(), Some("no room"));
    }

    #[test]
    fn ratios_of_ways_are_told_for_each_batch_and_without_its_length_for_the_longest() {
        let lines = [
            line("random", Index::None, 10.0, &[2.0]),
            line("sorted-merged", Index::None, 10.0, &[3.0]),
            line("random", Index::None, 1000.0, &[2.0]),
            line("sorted-merged", Index::None, 1000.0, &[14.0]),
            line("bound", Index::None, 1000.0, &[21.0]),
            line("sorted-direct", Index::Mixed, 1000.0, &[1.0]),
            line("sorted-merged", Index::Apart, 1000.0, &[12.0]),
        ];
        let expected = [
            ("spinning_sorted_vs_random_batch_10", 1.5),
            ("spinning_sorted_vs_random_batch_1000", 7.0),
            ("spinning_sorted_vs_random", 7.0),
            ("spinning_bound_vs_sorted_batch_1000", 1.5),
            ("spinning_bound_vs_sorted", 1.5),
            ("spinning_apart_vs_mixed_batch_1000", 12.0),
            ("spinning_apart_vs_mixed", 12.0),
        ];
        assert_eq!(
            ratios_of_ways("spinning", &lines),
            expected.map(|(name, ratio)| (name.to_owned(), ratio))
        );
    }

    #[test]
    fn the_page_file_is_compared_with_the_best_form_of_each_other() {
        let lines = [
            line("page-file", Index::None, 0.0, &[80.0, 100.0, 90.0]),
            line("pwrite-fdatasync", Index::None, 0.0, &[20.0]),
            line("sqlite", Index::None, 0.0, &[5.0]),
            line("sqlite/one-connection", Index::None, 0.0, &[9.0]),
        ];
        let expected =
            [("page_file_vs_pwrite_fdatasync_16w", 4.5), ("page_file_vs_sqlite_16w", 10.0)];
        let expected = expected.map(|(name, ratio)| (name.to_owned(), ratio));
        assert_eq!(ratios_of_pages("", &lines, 16), expected);
        assert!(ratios_of_pages("", &lines, 4).is_empty());
    }

    #[test]
    fn what_a_page_file_put_off_counts() {
        let sample = Sample {
            appends: 100.0,
            seconds: 1.0,
            finish_seconds: Some(1.0),
            device_writes: Some(20.0),
            finish_writes: Some(80.0),
            ..Sample::default()
        };
        let facts = pages(16, &sample);
        assert_eq!((facts["per_s"], facts["acknowledged_per_s"]), (50.0, 100.0));
        assert_eq!((facts["writes"], facts["elapsed_s"]), (1.0, 2.0));
        assert!(!facts.contains_key("cpu_us"));
    }
}
