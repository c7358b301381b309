//! The benchmark `pacing`: checks invariants of its report that hold on any disk.

use std::ffi::OsStr;

use clap::Parser;
use haul_bench::pacing::PacingBench;
use haul_bench::write_modes::VirtualDisk;
use haul_bench::{Benchmark, Error, Report, Row, Silent, Value};
use haul_testing::skip;
use tempfile::TempDir;

use crate::disk_dir;
use crate::reports::StopAfter;

fn options(dir: &TempDir) -> PacingBench {
    let words = "haul --bulk 32MiB --windows 1MiB,256KiB --rounds 1 --alone 30ms --dir";
    PacingBench::parse_from(words.split(' ').map(OsStr::new).chain([dir.path().as_os_str()]))
}

fn number(report: &Report, row: &Row, key: &str) -> Option<f64> {
    report.value(row, key)?.number()
}

/// Checks the invariants of a report on any file system.
fn check(report: &Report) {
    let bulk = |row: &Row| report.value(row, "bulk").cloned();
    assert_eq!(report.rows.len(), 2 * 6);
    for row in report.rows.iter().filter(|row| row.state.is_none()) {
        let of = |key| number(report, row, key);
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
    let windows = report.rows.iter().filter(paced).map(|row| number(report, row, "window_mib"));
    assert_eq!(windows.collect::<Vec<_>>(), [1.0, 0.25, 1.0, 0.25].map(Some));
    for name in ["p999", "overwrite_p999", "bulk_rate"] {
        for mode in ["paced", "dropping"] {
            assert!(report.ratios[&format!("{mode}_{name}_vs_unpaced")].value > 0.0);
        }
    }
}

#[test]
fn both_writers_are_measured_in_each_mode() {
    let dir = disk_dir();
    let report = options(&dir).run(&Silent).unwrap();
    check(&report);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "left behind");
    let limits = std::fs::read_to_string("/proc/sys/vm/dirty_ratio").unwrap();
    assert!(
        report.notes[0].contains(&format!("vm.dirty_ratio {}", limits.trim()))
            || limits.trim() == "0"
    );
}

#[test]
fn virtual_disk_has_a_journal() {
    let dir = disk_dir();
    let options = PacingBench { virtual_disk: vec![VirtualDisk::Ext4], ..options(&dir) };
    match options.run(&Silent) {
        Ok(report) => {
            check(&report);
            assert_eq!(report.host.storage[0].journal, Some(true));
        }
        Err(Error::Missing(why)) => skip(&why),
        Err(error) => panic!("{error:?}"),
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "left behind");
}

#[test]
fn cancelled_pacing_leaves_no_files() {
    let dir = disk_dir();
    for stop_after in [0, 1, 20, 50] {
        let stopped = options(&dir).run(&StopAfter(stop_after.into()));
        assert!(matches!(stopped, Err(Error::Cancelled)), "after {stop_after}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "after {stop_after}");
    }
}
