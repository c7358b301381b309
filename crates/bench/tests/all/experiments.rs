//! Experiments of the texts: checks counts that are equal on any machine.

use haul_bench::random_write::RandomWriteBench;
use haul_bench::small_files::HaystackBench;
use haul_bench::splice::SpliceBench;
use haul_bench::write_modes::WriteModesBench;

use crate::reports::{number, numbers, report};

#[test]
fn journal_costs_writes_only_in_new_blocks() {
    let line = "--virtual-disk ext4,ext4-nojournal --modes zero-range --sizes 4KiB --records 8";
    let Some(report) = report::<WriteModesBench>(line, true) else { return };
    // The passes of ext4, and those without a journal.
    let counts = numbers(&report, &[("sync", "fdatasync")], "journal_writes");
    assert_eq!(counts, [2.0, 0.0, 0.0, 0.0]);
    assert!(report.ratios.contains_key("nojournal_vs_journal_zero_range_fsync"));
}

#[test]
fn records_of_512_bytes_commit_each_reserved_block_once() {
    let line = "--virtual-disk ext4 --modes append+fdatasync,fallocate+fdatasync \
                --sizes 512 --records 16";
    let Some(report) = report::<WriteModesBench>(line, true) else { return };
    let journal = |way: &str| numbers(&report, &[("way", way)], "journal_writes");
    // A commit is two writes; a block has eight records.
    assert_eq!((journal("append"), journal("fallocate")), (vec![2.0, 0.0], vec![0.25, 0.0]));
}

#[test]
fn data_journal_receives_the_data_too() {
    let line = "--virtual-disk ext4-ordered,ext4-writeback,ext4-journal \
                --modes append+fdatasync --sizes 4KiB --records 8 --rounds 1";
    let Some(report) = report::<WriteModesBench>(line, true) else { return };
    let first = |table: &str| {
        let row = report.rows.iter().find(|row| row.table == table).unwrap();
        number(&report, row, "journal_bytes")
    };
    assert!(first("ext4-journal") > first("ext4-ordered").max(first("ext4-writeback")));
    assert!(first("ext4-writeback") >= 8192.0);
}

#[test]
fn protected_write_cache_gets_no_sync() {
    let line = "--virtual-disk ext4 --protected-cache --modes append --sizes 4KiB --records 4 \
                --rounds 1";
    let Some(report) = report::<WriteModesBench>(line, true) else { return };
    for row in report.rows.iter().filter(|row| row.state.is_none()) {
        assert_eq!(number(&report, row, "device_syncs"), 0.0, "{row:?}");
    }
}

#[test]
fn trace_shows_the_journal_of_a_growing_file() {
    let outside = tempfile::tempdir().unwrap();
    let lines = outside.path().join("lines");
    let line = format!(
        "--virtual-disk ext4 --modes append+fdatasync,filled+fdatasync --sizes 4KiB --records 4 \
         --rounds 1 --trace {}",
        lines.display()
    );
    if report::<WriteModesBench>(&line, true).is_none() {
        return;
    }
    let text = std::fs::read_to_string(lines).unwrap();
    let (append, filled) = text.split_once("# ext4: filled").unwrap();
    // The journal queues its own requests. Those of others may be completed while its thread runs.
    let is_journal = |line: &str| line.contains("jbd2/") && line.contains("block_bio_queue:");
    assert!(append.lines().any(is_journal) && append.contains("block_rq_complete:"), "{append}");
    assert!(!filled.lines().any(is_journal) && filled.contains("block_rq_complete:"), "{filled}");
}

#[test]
fn relayed_bodies_need_fewer_system_calls_through_a_reused_pipe() {
    let line = "--sizes 1KiB,256KiB --rounds 1 --seconds 20ms";
    let Some(report) = report::<SpliceBench>(line, false) else { return };
    // Those of bodies of 1 KiB, and of 256 KiB.
    let calls = |way: &str| numbers(&report, &[("way", way)], "system_calls");
    assert_eq!(calls("splice, a pipe per call")[0], 5.0);
    assert_eq!(calls("read + write, 1 KiB")[1], 512.0);
    let reused = calls("splice, reused pipe");
    assert!(reused[0] == 2.0 && (8.0..64.0).contains(&reused[1]), "{reused:?}");
}

#[test]
fn index_between_records_needs_more_time_than_both_alone() {
    let line = "--shapes records --ways sorted --index no,alone,mixed,apart,in-memory --rounds 1 \
                --record-size 100 --records 400 --batches 100 --file-size 64MiB --index-size 8MiB";
    let Some(report) = report::<RandomWriteBench>(line, false) else { return };
    let of = |index: &str, key| numbers(&report, &[("way", "sorted"), ("index", index)], key)[0];
    let ratio = |name: &str| report.ratios[name].value;
    assert!(ratio("spinning_mixed_vs_sum") > 1.0, "{:?}", report.ratios);
    assert!(ratio("spinning_mixed_vs_sum") > ratio("spinning_apart_vs_sum"));
    assert!(ratio("spinning_mixed_vs_in_memory") > 1.0, "{:?}", report.ratios);
    // Each batch is synced once, and an index that stays in memory at most as often as another.
    assert!(of("mixed", "syncs") > of("no", "syncs"));
    assert!(of("in-memory", "syncs") <= of("mixed", "syncs"));
    assert!(of("alone", "seeks") > 0.0);
}

#[test]
fn pages_stored_through_a_mapping_are_read_first() {
    let line = "--shapes pages --ways random,random-mapped,sorted,sorted-mapped --records 200 \
                --batches 200 --file-size 64MiB --index-size 0 --rounds 1";
    let Some(report) = report::<RandomWriteBench>(line, false) else { return };
    let reads = |way: &str| numbers(&report, &[("way", way)], "reads")[0];
    // A read for a page that is stored first brings some of its neighbours.
    assert!(reads("random-mapped") > 0.3 && reads("sorted-mapped") > 0.3);
    assert!(reads("random") < 0.1 && reads("sorted") < 0.1);
    assert!(report.ratios["spinning_pages_random_vs_mapped"].value > 1.0, "{:?}", report.ratios);
}

#[test]
fn cold_object_takes_one_read_and_a_file_two() {
    let Some(report) = report::<HaystackBench>("--dirs 40", false) else { return };
    let reads = |name: &str| report.ratios[name].value;
    assert!((0.95..1.1).contains(&reads("reads_per_object")), "{:?}", report.ratios);
    assert!((1.7..2.1).contains(&reads("reads_per_listed_file")), "{:?}", report.ratios);
    assert!(reads("reads_per_cold_file") > reads("reads_per_listed_file"));
    assert!(reads("reads_per_listed_file_with_readahead") < reads("reads_per_listed_file"));
}
