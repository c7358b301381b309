//! Runs the benchmarks of the file store with small loads, and checks their reports.

use serde_json::Value;

use crate::work_dir::WorkDir;

/// Runs a benchmark in the directory `d`, which must be empty afterwards, and returns its report.
fn report(arguments: &[&str]) -> Value {
    let place = WorkDir::on_disk();
    std::fs::create_dir(place.path("d")).unwrap();
    let begin = [&arguments[..1], &["--dir", "d", "--json", "report"]].concat();
    place.run(&[&begin[..], &arguments[1..]].concat()).code(0);
    assert_eq!(std::fs::read_dir(place.path("d")).unwrap().count(), 0, "left behind");
    let text = std::fs::read(place.path("report")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn puts_are_measured_beside_the_floor_and_files() {
    let load = ["--sizes", "4KiB", "--writers", "2", "--rounds", "1", "--seconds", "50ms"];
    // The program `true` prints an empty list of rivals, so none are measured.
    let report = report(&[&["small-files", "--rivals", "true"][..], &load].concat());
    let rows = report["rows"].as_array().unwrap();
    let targets: Vec<_> = rows.iter().map(|row| row["target"].as_str().unwrap()).collect();
    let floors = ["floor: group commit", "floor: new blocks"];
    assert_eq!(targets, ["haul", "haul: overwriting", floors[0], floors[1], "file, fsync"]);
    assert!(rows.iter().all(|row| row["puts_per_s"].as_f64().unwrap() > 0.0), "{rows:?}");
    for ratio in ["store_vs_floor_4096_2w", "store_vs_files_4096_2w"] {
        assert!(report["ratios"][ratio]["value"].as_f64().unwrap() > 0.0, "{ratio}");
    }
}

#[test]
fn objects_are_read_cold_and_hot() {
    let load = ["--sizes", "4KiB", "--data-size", "16MiB", "--threads", "3"];
    let times = ["--rounds", "1", "--seconds", "50ms"];
    let report = report(&[&["small-files-get"][..], &load, &times].concat());
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 2);
    assert!(rows.iter().all(|row| row["gets_per_s"].as_f64().unwrap() > 0.0), "{rows:?}");
    // The device counts the requests of other programs, too, but not fewer than those of the reads.
    let is_cold_object = |row: &&Value| row["table"] == "cold" && row["target"] == "haul";
    let cold = rows.iter().find(is_cold_object).unwrap();
    let device_bytes = &cold["device_bytes_per_get"];
    assert!(device_bytes.as_f64().is_none_or(|bytes| bytes > 1024.0), "{cold}");
    for ratio in ["store_vs_floor_4096_of_4096_cold", "store_vs_floor_4096_of_4096_hot"] {
        assert!(report["ratios"][ratio]["value"].as_f64().unwrap() > 0.0, "{ratio}");
    }
}
