//! Runs the benchmarks of the file store with small loads, and checks their reports.

use crate::work_dir::report;

#[test]
fn puts_are_measured_beside_the_floor_and_files() {
    // The program `true` prints an empty list of rivals, so none are measured.
    let load =
        "small-files --dir d --sizes 4KiB --writers 2 --rounds 1 --seconds 50ms --rivals true";
    let report = report(load);
    let rows = report["rows"].as_array().unwrap();
    let targets: Vec<_> = rows.iter().map(|row| row["target"].as_str().unwrap()).collect();
    let floors = ["floor: group commit", "floor: new blocks"];
    assert_eq!(targets, ["haul", "haul: overwriting", floors[0], floors[1], "file, fsync"]);
    assert!(rows.iter().all(|row| row["puts_per_s"].as_f64().unwrap() > 0.0), "{rows:?}");
    for ratio in ["store_vs_floor_4096_2w", "store_vs_files_4096_2w"] {
        assert!(report["ratios"][ratio]["value"].as_f64().unwrap() > 0.0, "{ratio}");
    }
}
