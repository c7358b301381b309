//! The benchmark `pacing`: checks invariants of its report that hold on any disk.

use haul_bench::pacing::PacingBench;
use haul_bench::{Report, Row, Value};

use crate::reports::{cancel, report};

const LINE: &str = "--bulk 32MiB --windows 1MiB,256KiB --rounds 1 --alone 30ms";

/// Checks the invariants of a report on any file system.
fn check(report: &Report) {
    let bulk = |row: &Row| report.value(row, "bulk").cloned();
    assert_eq!(report.rows.len(), 2 * 6);
    for row in report.rows.iter().filter(|row| row.state.is_none()) {
        let of = |key| report.value(row, key)?.number();
        assert!(of("writes").is_some_and(|writes| writes > 0.0), "{row:?}");
        assert!(of("p50_us") <= of("p99_us") && of("p99_us") <= of("p999_us"), "{row:?}");
        let is_alone = bulk(row) == Some(Value::from("alone"));
        assert_eq!(of("bulk_mib_per_s").is_some(), !is_alone, "{row:?}");
        let cached = of("cached_percent");
        match bulk(row) {
            Some(Value::Text(mode)) if mode == "alone" => assert_eq!(cached, None, "{row:?}"),
            // The kernel may reclaim some of the pages at any time.
            Some(Value::Text(mode)) if mode == "unpaced" || mode == "paced" => {
                assert!(cached.is_some_and(|percent| percent > 75.0), "{row:?}");
            }
            // The kernel may have isolated some of the pages in order to reclaim them: such pages
            // cannot be dropped.
            Some(Value::Text(mode)) if mode == "paced, dropped" => {
                assert!(cached.is_some_and(|percent| percent <= 10.0), "{row:?}");
            }
            // Direct writes create no pages.
            _ => assert_eq!(cached, Some(0.0), "{row:?}"),
        }
    }
    let paced = |row: &&Row| bulk(row) == Some(Value::from("paced")) && row.state.is_none();
    let windows = report.rows.iter().filter(paced).map(|row| report.value(row, "window_mib"));
    let expected = [1.0, 0.25, 1.0, 0.25].map(Value::Number);
    assert_eq!(windows.collect::<Vec<_>>(), expected.each_ref().map(Some));
    for name in ["p999", "overwrite_p999", "bulk_rate"] {
        for mode in ["paced", "dropping"] {
            assert!(report.ratios[&format!("{mode}_{name}_vs_unpaced")].value > 0.0);
        }
    }
}

#[test]
fn both_writers_are_measured_in_each_mode() {
    let report = report::<PacingBench>(LINE, true).unwrap();
    check(&report);
    assert!(report.notes[0].contains("its limits: writers wait at "), "{:?}", report.notes);
}

#[test]
fn virtual_disk_has_a_journal() {
    let line = format!("{LINE} --virtual-disk ext4");
    let Some(report) = report::<PacingBench>(&line, true) else { return };
    check(&report);
    assert_eq!(report.host.storage[0].journal, Some(true));
}

#[test]
fn cancelled_pacing_leaves_no_files() {
    cancel::<PacingBench>(LINE, &[0, 1, 20, 50]);
}
