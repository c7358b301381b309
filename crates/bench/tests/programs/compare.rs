//! `haul bench compare`: two runs on a simulated disk, whose clock is part of the simulation.

use haul_testing::skip;
use serde_json::Value;

use crate::work_dir::WorkDir;

/// One writer: several threads would reach the disk in another order in each run.
const BENCH: [&str; 9] = [
    "random-write",
    "--drive",
    "deskstar-7k1000.c",
    "--records",
    "400",
    "--batches",
    "1000",
    "--file-size",
    "64MiB",
];

#[test]
fn two_runs_on_the_simulated_disk_agree() {
    let place = WorkDir::new();
    for file in ["a.json", "b.json"] {
        let ended = place.run(&[&BENCH, &["--json", file][..]].concat());
        if ended.stderr().contains("needs root") {
            return skip(&ended.stderr());
        }
        assert!(ended.0.status.success(), "{}", ended.stderr());
    }
    let ended = place.run(&["compare", "a.json", "b.json", "--json"]);
    let comparison: Value = serde_json::from_slice(&ended.0.stdout).unwrap();
    let has_moved = comparison["moved"].as_u64().unwrap() > 0;
    assert_eq!(ended.0.status.code(), Some(i32::from(has_moved)));
    let ratios = comparison["ratios"].as_array().unwrap().iter();
    let verdicts: Vec<_> = ratios.map(|it| it["verdict"].as_str().unwrap()).collect();
    let close = verdicts.iter().filter(|it| **it == "agrees").count();
    let all = verdicts.len();
    assert!(all >= 15 && close * 100 >= all * 95, "{close} of {all}: {comparison:#}");
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
