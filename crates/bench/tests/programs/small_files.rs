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
