//! Experiments on a simulated drive.

use clap::Parser;
use haul_bench::seed::{haystack, index, mmap, order, sorted};
use haul_bench::{Error, Report, Result, Silent, Value};
use haul_testing::skip;

use super::{finished, number, options, rows};
use crate::disk_dir;

fn parsed<O: Parser>(line: &str) -> O {
    O::parse_from(line.split(' '))
}

/// Returns the report; `None` if this machine cannot simulate a drive.
fn simulated(report: Result<Report>) -> Option<Report> {
    match report {
        Err(Error::Missing(why)) => {
            skip(&why);
            None
        }
        report => Some(report.unwrap()),
    }
}

#[test]
fn sorted_records_need_fewer_seeks_and_a_mixed_index_more() {
    let options = parsed("sorted --records 400 --bytes 64MiB --index-size 8MiB");
    let Some(report) = simulated(sorted::run(&options, &Silent)) else { return };
    let [random, sorted, _, mixed, apart] = &report.rows[..] else { panic!("{:?}", report.rows) };
    for row in &report.rows {
        assert_eq!(number(&report, row, "records"), 400.0);
    }
    let of = |row, key| number(&report, row, key);
    assert!(of(sorted, "travel_cylinders") < of(random, "travel_cylinders") / 2.0);
    assert!(of(apart, "travel_cylinders") < of(mixed, "travel_cylinders"));
    assert!(report.ratios["sorted_vs_random"].value > 1.0, "{:?}", report.ratios);
    assert!(
        report.ratios["mixed_vs_sum"].value > report.ratios["apart_vs_sum"].value,
        "{:?}",
        report.ratios
    );
}

#[test]
fn least_time_in_arrival_order_follows_from_a_sample() {
    let options = parsed("sorted --records 400 --sample 100 --bytes 64MiB --index-size 8MiB");
    let Some(report) = simulated(sorted::run(&options, &Silent)) else { return };
    let texts = ["sorted", "random", "sorted", "sorted", "random, 100 of 400"];
    let names: Vec<_> = report.rows.iter().map(|row| row.values[0].clone()).collect();
    assert_eq!(names[..5], texts.map(Value::from));
    assert_eq!(names[5], Value::from("random, all: at least"));
    let [sorted, .., least] = &report.rows[..] else { panic!("{:?}", report.rows) };
    assert!(number(&report, least, "service_s") > number(&report, sorted, "service_s"));
    assert!(report.ratios["sorted_vs_random"].value > 1.0, "{:?}", report.ratios);
}

#[test]
fn physical_order_of_one_directory_is_faster_than_directory_order() {
    let Some(report) = simulated(order::run(&parsed("order"), &Silent)) else { return };
    assert_eq!(report.bench, "seed order");
    assert!(report.ratios["physical_vs_unsorted"].value > 2.0, "{:?}", report.ratios);
    assert!(report.notes.iter().any(|note| note.contains("haul bench read-order --drive")));
}

#[test]
fn index_between_records_needs_more_seeks_than_both_alone() {
    let options =
        parsed("index --records 400 --batch 100 --bytes 64MiB --index-size 8MiB --rounds 1");
    let Some(report) = simulated(index::run(&options, &Silent)) else { return };
    let [data, alone, mixed, _, in_memory] = &report.rows[..] else { panic!("{:?}", report.rows) };
    let of = |row, key| number(&report, row, key);
    assert!(report.ratios["mixed_vs_sum"].value > 1.0, "{:?}", report.ratios);
    assert!(report.ratios["mixed_vs_sum_seeks"].value > 1.0, "{:?}", report.ratios);
    assert!(report.ratios["mixed_vs_in_memory"].value > 1.0, "{:?}", report.ratios);
    // Each batch is synced once, and an index that stays in memory once more in all.
    assert!(of(mixed, "syncs") > of(data, "syncs"), "{mixed:?}");
    assert!(of(in_memory, "syncs") < of(mixed, "syncs"), "{in_memory:?}");
    assert!(of(alone, "seeks") > 0.0, "{alone:?}");
}

#[test]
fn pages_stored_through_a_mapping_are_read_first() {
    let dir = disk_dir();
    let line = "--pages 200 --bytes 64MiB --rounds 5";
    let Some(report) = finished(&dir, mmap::run(&options(&dir, line), &Silent)) else { return };
    assert_eq!(report.rows.len(), 2 * 4);
    let reads = |way: &str| {
        let rows = rows(&report, &[("way", way)]);
        number(&report, rows[0], "reads")
    };
    // A read for a page that is stored first brings some of its neighbours.
    assert!(reads("random-mapped") > 0.3 && reads("sorted-mapped") > 0.3);
    assert!(reads("random") < 0.1 && reads("sorted") < 0.1);
    assert!(report.ratios["simulated_pwrite_vs_mmap"].value > 1.0, "{:?}", report.ratios);
}

#[test]
fn cold_object_takes_one_read_and_a_file_two() {
    let options = parsed("haystack --dirs 40 --rounds 5");
    let Some(report) = simulated(haystack::run(&options, &Silent)) else { return };
    let reads = |name: &str| report.ratios[name].value;
    assert!((0.95..1.1).contains(&reads("reads_per_object")), "{:?}", report.ratios);
    assert!((1.7..2.1).contains(&reads("reads_per_listed_file")), "{:?}", report.ratios);
    assert!(reads("reads_per_cold_file") > reads("reads_per_listed_file"));
    assert!(
        reads("reads_per_listed_file_with_readahead") < reads("reads_per_listed_file"),
        "{:?}",
        report.ratios
    );
}
