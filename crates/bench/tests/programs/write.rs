//! Runs `haul bench random-write` with a small load, and checks its report.

use crate::work_dir::{report, report_unless};

const LOAD: &str = "random-write --rounds 1 --records 60 --file-size 16MiB --index-size 1MiB \
                    --batches 1,1000 --batches-max 20";

#[test]
fn all_methods_are_measured_in_a_directory() {
    let report = report(&format!("{LOAD} --drive none --dir d"));
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.iter().filter(|row| row["way"] == "sorted-merged").count(), 2 * 3);
    for row in rows {
        if row["state"] == "measured" {
            assert!(row["per_s"].as_f64().unwrap() > 0.0, "{row}");
        }
    }
    assert!(report["ratios"]["disk_sorted_vs_random"]["value"].as_f64().unwrap() > 0.0);
}

#[test]
fn simulated_drive_reports_service_times_and_the_bound() {
    let line = format!("{LOAD} --ways random,sorted-merged");
    let Some(report) = report_unless(&line, &["needs root"]) else { return };
    let rows = report["rows"].as_array().unwrap();
    let service = |method: &str| {
        let found = rows.iter().find(|row| row["way"] == method && row["batch"] == 60);
        found.unwrap()["service_s"].as_f64().unwrap()
    };
    assert!(service("bound") < service("sorted-merged"));
    assert!(service("sorted-merged") < service("random"));
    assert!(report["ratios"]["spinning_bound_vs_sorted"]["value"].as_f64().unwrap() > 1.0);
}
