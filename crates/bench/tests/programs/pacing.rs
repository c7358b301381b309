//! Runs `haul bench pacing` with a small load, and checks its report.

use serde_json::Value;

use crate::work_dir::WorkDir;

#[test]
fn small_writes_are_measured_during_bulk_writes() {
    let place = WorkDir::on_disk();
    std::fs::create_dir(place.path("d")).unwrap();
    let sizes = ["--bulk", "16MiB", "--windows", "512KiB,1MiB", "--alone", "20ms"];
    let begin = ["pacing", "--dir", "d", "--rounds", "1", "--json", "report"];
    let ended = place.run(&[&begin[..], &sizes].concat()).code(0);
    assert!(ended.text().contains("paced, dropped"), "{}", ended.text());
    assert_eq!(std::fs::read_dir(place.path("d")).unwrap().count(), 0, "left behind");
    let report = std::fs::read(place.path("report")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let paced = |row: &&Value| row["bulk"] == "paced" && row["state"] == "measured";
    let windows: Vec<_> = rows.iter().filter(paced).map(|row| &row["window_mib"]).collect();
    assert_eq!(windows, [0.5, 1.0, 0.5, 1.0]);
    for ratio in ["paced_p999_vs_unpaced", "paced_bulk_rate_vs_unpaced"] {
        assert!(report["ratios"][ratio]["value"].as_f64().unwrap() > 0.0, "{ratio}");
    }
}
