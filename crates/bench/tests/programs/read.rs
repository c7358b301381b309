//! Runs the benchmarks of reading with small loads, and checks that they measure and leave nothing
//! behind.

use std::collections::BTreeSet;
use std::path::Path;

use haul_testing::files_below;

use crate::work_dir::{report, report_unless};

#[test]
fn random_reads_are_measured_by_all_readers_in_all_ways() {
    let line = "random-read --dir d --rounds 1 --readers 1,3 --file-size 8MiB --seconds 30ms";
    let report = report(line);
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 2 * 4);
    for row in rows.iter().filter(|row| row["state"] == "measured") {
        assert!(row["reads"].as_f64().unwrap() > 0.0, "{row}");
        assert!(row["p999_us"].as_f64() >= row["median_us"].as_f64(), "{row}");
    }
    assert!(rows.iter().any(|row| row["table"] == "warm" && row["state"] == "measured"));
    assert!(report["ratios"]["shared_vs_locked_3_warm"]["value"].as_f64().unwrap() > 0.0);
}

#[test]
fn sequential_reads_report_the_cached_part() {
    let report = report(
        "sequential-read --dir d --rounds 1 --advice normal,random --file-size 8MiB --sizes 256KiB \
         --windows 1MiB",
    );
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 6 + 5);
    for row in rows.iter().filter(|row| row["state"] == "measured") {
        assert!(row["mb_per_s"].as_f64().unwrap() > 0.0, "{row}");
        let cached = row["cached_percent"].as_f64().unwrap();
        match row["way"].as_str().unwrap() {
            "direct" => assert!(cached < 1.0, "{row}"),
            "uncached" => assert!(cached < 100.0, "{row}"),
            // The kernel may reclaim some of the pages at any time.
            _ => assert!(cached > 75.0, "{row}"),
        }
    }
    assert!(report["ratios"]["direct_vs_read"]["value"].as_f64().is_none_or(|ratio| ratio > 0.0));
}

#[test]
fn pages_are_read_with_little_memory_and_the_limit_is_gone_afterwards() {
    let before = groups();
    let small = "--dir d --memory 64MiB --readers 2 --seconds 50ms --rounds 1";
    let line = format!("direct-or-cached --data-percent 20,200 {small}");
    let needs = "limiting memory needs root and the memory cgroup";
    let Some(direct) = report_unless(&line, &[needs]) else { return };
    let rows = direct["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 3);
    // Direct reads always reach the device. Pages in the page cache may be reclaimed at any time for
    // other processes, so that the number of their reads says nothing.
    assert_eq!(rows[0]["state"], "measured");
    let direct_reads = rows[2]["device_reads"].as_f64();
    assert!(direct_reads.is_none_or(|reads| reads > 0.9), "{}", rows[2]);

    let app = report(&format!("app-cache --cold-percent 200 --hot-percent 20 {small}"));
    let rows = app["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 5);
    // Pages in the application cache stay, even if the kernel reclaims page cache.
    assert!(rows[2]["kept_percent"].as_f64().is_some_and(|kept| kept > 95.0), "{}", rows[2]);
    assert!(rows[1]["scan_mb_per_s"].as_f64() > rows[0]["scan_mb_per_s"].as_f64());
    // Running benchmarks of other tests have cgroups, too; these are not counted. The cgroup of a
    // benchmark may remain for a moment after it ended, because another process removes it.
    let is_left = |name: &String| {
        let process = name.trim_start_matches("haul-bench-").split('-').next().unwrap();
        !before.contains(name) && !Path::new("/proc").join(process).exists()
    };
    haul_testing::eventually("no cgroup of an ended benchmark is left", || {
        !groups().iter().any(is_left)
    });
}

/// Returns the names of the cgroups that benchmarks created.
fn groups() -> BTreeSet<String> {
    let files = files_below(Path::new("/sys/fs/cgroup")).into_iter();
    let names = files.filter_map(|file| Some(file.parent()?.file_name()?.to_str()?.to_owned()));
    names.filter(|name| name.starts_with("haul-bench-")).collect()
}
