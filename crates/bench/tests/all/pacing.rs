//! What must hold whatever the disk: counts, not times.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haul_bench::pacing::{Options, run};
use haul_bench::write_modes::VirtualDisk;
use haul_bench::{Error, Report, Row, Silent, Value, Watcher};
use haul_test_image::skip;
use tempfile::TempDir;

use crate::disk_dir;

fn options(dir: &TempDir) -> Options {
    let (bulk_bytes, window_bytes) = (32 << 20, vec![1 << 20, 256 << 10]);
    let alone = Duration::from_millis(30);
    Options { bulk_bytes, window_bytes, rounds: 1, alone, ..Options::new(dir.path()) }
}

fn number(report: &Report, row: &Row, key: &str) -> Option<f64> {
    report.value(row, key)?.number()
}

/// Checks what every report has, on whatever file system.
fn check(report: &Report) {
    let bulk = |row: &Row| report.value(row, "bulk").cloned();
    assert_eq!(report.rows.len(), 2 * 6);
    for row in report.rows.iter().filter(|row| row.state.is_none()) {
        let of = |key| number(report, row, key);
        assert!(of("writes").is_some_and(|writes| writes > 0.0), "{row:?}");
        assert!(of("p50_us") <= of("p99_us") && of("p99_us") <= of("p999_us"), "{row:?}");
        let is_alone = bulk(row) == Some(Value::from("alone"));
        assert_eq!(of("bulk_mib_per_s").is_some(), !is_alone, "{row:?}");
        let cached = match bulk(row) {
            Some(Value::Text(way)) if way == "alone" => None,
            Some(Value::Text(way)) if way == "unpaced" || way == "paced" => Some(100.0),
            _ => Some(0.0),
        };
        assert_eq!(of("cached_percent"), cached, "{row:?}");
    }
    for name in ["p999", "overwrite_p999", "bulk_rate"] {
        for way in ["paced", "dropping"] {
            assert!(report.ratios[&format!("{way}_{name}_vs_unpaced")] > 0.0);
        }
    }
}

#[test]
fn both_writers_are_measured_beside_every_way_and_nothing_is_left() {
    let dir = disk_dir();
    let report = run(&options(&dir), &Silent).unwrap();
    check(&report);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "left behind");
    let limits = std::fs::read_to_string("/proc/sys/vm/dirty_ratio").unwrap();
    assert!(
        report.notes[0].contains(&format!("vm.dirty_ratio {}", limits.trim()))
            || limits.trim() == "0"
    );
}

#[test]
fn a_file_system_with_a_journal_is_made_for_it() {
    let dir = disk_dir();
    let options = Options { virtual_disks: vec![VirtualDisk::Ext4], ..options(&dir) };
    match run(&options, &Silent) {
        Ok(report) => {
            check(&report);
            assert_eq!(report.host.storage[0].journal, Some(true));
        }
        Err(Error::Missing(why)) => skip(&why),
        Err(error) => panic!("{error:?}"),
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "left behind");
}

/// Says stop after so many questions.
struct StopAfter(AtomicUsize);

impl Watcher for StopAfter {
    fn is_cancelled(&self) -> bool {
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
            .is_err()
    }
}

#[test]
fn a_bench_of_pacing_that_is_stopped_leaves_nothing() {
    let dir = disk_dir();
    for stop_after in [0, 1, 20, 50] {
        let stopped = run(&options(&dir), &StopAfter(stop_after.into()));
        assert!(matches!(stopped, Err(Error::Cancelled)), "after {stop_after}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "after {stop_after}");
    }
}
