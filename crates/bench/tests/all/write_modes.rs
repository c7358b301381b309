//! The benchmark `write-modes`: checks the counts of requests, which are equal on any disk.

use haul_bench::write_modes::WriteModesBench;
use haul_bench::{Report, Row};

use crate::reports::{cancel, number, report, rows as rows_with};

/// Returns the report of a short run on a virtual disk; `None` if it cannot be created. The median
/// of five rounds is not affected by a single `sync` of another program.
fn on(disk: &str, modes: &str) -> Option<Report> {
    let line = format!("--virtual-disk {disk} --modes {modes} --sizes 4KiB --records 8");
    report::<WriteModesBench>(&line, true)
}

/// Returns the rows of a mode: the first pass and the second.
fn rows<'a>(report: &'a Report, preparation: &str, sync: &str) -> [&'a Row; 2] {
    rows_with(report, &[("way", preparation), ("sync", sync)]).try_into().unwrap()
}

/// Checks that a record costs one write of a page, one sync, and nothing else.
#[track_caller]
fn assert_one_write_and_one_sync(report: &Report, row: &Row) {
    for (key, expected) in [
        ("data_writes", 1.0),
        ("journal_writes", 0.0),
        ("metadata_writes", 0.0),
        ("other_writes", 0.0),
        ("device_syncs", 1.0),
        ("device_written_bytes", 4096.0),
    ] {
        assert_eq!(number(report, row, key), expected, "{key} of {row:?}");
    }
}

#[test]
fn ext4_journals_growing_files_but_not_overwrites() {
    let modes = ["append", "fallocate", "zero-range", "filled", "recycled"];
    let modes = modes.map(|one| format!("{one}+fdatasync,{one}+direct-dsync")).join(",");
    let Some(report) = on("ext4", &modes) else { return };
    for sync in ["fdatasync", "direct-dsync"] {
        for preparation in ["append", "fallocate", "zero-range"] {
            let [first, second] = rows(&report, preparation, sync);
            assert!(number(&report, first, "journal_writes") >= 1.0, "{first:?}");
            assert_one_write_and_one_sync(&report, second);
        }
        for preparation in ["filled", "recycled"] {
            for row in rows(&report, preparation, sync) {
                assert_one_write_and_one_sync(&report, row);
            }
        }
    }
    assert_eq!(report.ratios["journal_writes_per_record_recycled_4k"].value, 0.0);
    assert!(report.ratios["journal_writes_per_record_append_4k"].value >= 1.0);
    for name in ["recycled_vs_append_fdatasync_4k", "recycled_vs_fallocate_fdatasync_4k"] {
        assert!(report.ratios[name].value > 0.0, "{name}");
    }
}

#[test]
fn trace_and_device_counters_agree() {
    let line = "--virtual-disk ext4 --modes fdatasync,fsync --sizes 4KiB --records 8 --rounds 1";
    let Some(report) = report::<WriteModesBench>(line, true) else { return };
    for row in report.rows.iter().filter(|row| row.state.is_none()) {
        let of = |key| number(&report, row, key);
        let pages = of("data_writes") + of("metadata_writes") + of("other_writes");
        let traced = 4096.0 * pages + of("journal_bytes");
        let difference = (traced - of("device_written_bytes")).abs();
        assert!(difference < 1e-6, "they differ by {difference} B: {row:?}");
        assert_eq!(of("records"), 8.0);
    }
}

#[test]
fn xfs_log_writes_are_separated_from_data() {
    let Some(report) = on("xfs", "append+fdatasync,recycled+fdatasync") else { return };
    let [first, second] = rows(&report, "append", "fdatasync");
    assert!(number(&report, first, "journal_writes") >= 1.0, "{first:?}");
    assert_one_write_and_one_sync(&report, second);
    for row in rows(&report, "recycled", "fdatasync") {
        assert_one_write_and_one_sync(&report, row);
    }
}

#[test]
fn ext4_without_a_journal_writes_metadata_in_place() {
    let Some(report) = on("ext4-nojournal", "append+fdatasync,append+none") else { return };
    let [first, _] = rows(&report, "append", "fdatasync");
    assert_eq!(number(&report, first, "journal_writes"), 0.0);
    assert!(number(&report, first, "metadata_writes") >= 1.0, "{first:?}");
    for row in rows(&report, "append", "none") {
        for key in ["data_writes", "metadata_writes", "device_syncs", "device_written_bytes"] {
            assert_eq!(number(&report, row, key), 0.0, "{key} of {row:?}");
        }
    }
}

#[test]
fn btrfs_writes_metadata_for_overwrites_too() {
    let Some(report) = on("btrfs", "append+fdatasync,recycled+fdatasync") else { return };
    for preparation in ["append", "recycled"] {
        for row in rows(&report, preparation, "fdatasync") {
            assert!(number(&report, row, "metadata_writes") >= 1.0, "{row:?}");
        }
    }
}

#[test]
fn directory_is_restored_after_completion_and_cancellation() {
    let line = "--modes append+none,recycled+msync,recycled+direct-dsync --sizes 512";
    assert_eq!(report::<WriteModesBench>(line, true).unwrap().rows.len(), 6);
    cancel::<WriteModesBench>(line, &[0, 1, 5, 100]);
}
