//! Runs `haul bench random-write` with a small load, and checks its report.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn bench(arguments: &[&str], json: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_haul-bench"))
        .args(["random-write", "--rounds", "1", "--records", "60", "--file-size", "16MiB"])
        .args(["--index-size", "1MiB", "--batches", "1,1000", "--batches-max", "20"])
        .args(arguments)
        .arg("--json")
        .arg(json)
        .output()
        .unwrap()
}

fn report(arguments: &[&str]) -> Result<Value, String> {
    let outside = tempfile::tempdir().unwrap();
    let json = outside.path().join("report.json");
    let output = bench(arguments, &json);
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap())
}

fn methods(report: &Value) -> Vec<&str> {
    report["rows"].as_array().unwrap().iter().map(|row| row["way"].as_str().unwrap()).collect()
}

#[test]
fn all_methods_are_measured_in_a_directory() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let place = dir.path().to_str().unwrap();
    let report = report(&["--drive", "none", "--dir", place]).unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "left behind");
    let methods = methods(&report);
    assert_eq!(methods.iter().filter(|method| **method == "sorted-merged").count(), 2 * 3);
    for row in report["rows"].as_array().unwrap() {
        if row["state"] == "measured" {
            assert!(row["per_s"].as_f64().unwrap() > 0.0, "{row}");
        }
    }
    assert!(report["ratios"]["disk_sorted_vs_random"]["value"].as_f64().unwrap() > 0.0);
}

#[test]
fn simulated_drive_reports_service_times_and_the_bound() {
    let report = match report(&["--ways", "random,sorted-merged"]) {
        Ok(report) => report,
        Err(why) if why.contains("needs root") => return haul_testing::skip(&why),
        Err(why) => panic!("{why}"),
    };
    let rows = report["rows"].as_array().unwrap();
    let service = |method: &str| {
        let found = rows.iter().find(|row| row["way"] == method && row["batch"] == 60);
        found.unwrap()["service_s"].as_f64().unwrap()
    };
    assert!(service("bound") < service("sorted-merged"));
    assert!(service("sorted-merged") < service("random"));
    assert!(report["ratios"]["spinning_bound_vs_sorted"]["value"].as_f64().unwrap() > 1.0);
}
