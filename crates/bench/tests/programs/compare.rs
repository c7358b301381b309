//! `haul bench compare`: the ratios of two reports, and its exit codes.

use serde_json::Value;

use crate::work_dir::{WorkDir, report_unless};

#[test]
fn each_ratio_of_a_report_agrees_with_itself() {
    let line = "random-write --drive deskstar-7k1000.c --records 400 --batches 1000 \
                --file-size 64MiB";
    let Some(report) = report_unless(line, &["needs root"]) else { return };
    let place = WorkDir::new();
    std::fs::write(place.path("a.json"), report.to_string()).unwrap();
    let ended = place.run_line("compare a.json a.json --json").code(0);
    let comparison: Value = serde_json::from_slice(&ended.0.stdout).unwrap();
    assert_eq!(comparison["moved"], 0);
    let ratios = comparison["ratios"].as_array().unwrap();
    assert!(ratios.len() >= 15, "{comparison:#}");
    assert!(ratios.iter().all(|ratio| ratio["verdict"] == "agrees"), "{comparison:#}");
}

#[test]
fn moved_ratio_and_unreadable_report_have_exit_codes() {
    let place = WorkDir::new();
    for (name, value) in [("a", 1), ("b", 2)] {
        let text = format!(r#"{{"bench": "b", "ratios": {{"r": {{"value": {value}}}}}}}"#);
        std::fs::write(place.path(name), text).unwrap();
    }
    std::fs::write(place.path("c"), "{}").unwrap();
    for (words, code) in [(["a", "a"], 0), (["a", "b"], 1), (["a", "c"], 3), (["a", "d"], 3)] {
        let ended = place.run(&[&["compare"], &words[..]].concat());
        assert_eq!(ended.0.status.code(), Some(code), "{words:?}: {}", ended.stderr());
    }
}
