//! `haul bench compare`: two runs on a simulated disk, whose clock is part of the simulation.

use haul_testing::skip;
use serde_json::Value;

use crate::work_dir::WorkDir;

/// Two benchmarks with one reader or writer: several threads would reach the disk in another order
/// in each run.
const BENCHES: [&[&str]; 2] = [
    &["read-order", "--files", "400", "--dirs", "8", "--threads", "1", "--disk-size", "1GiB"],
    &["random-write", "--records", "400", "--batches", "1000", "--writers", "1", "--file-size"],
];
const MORE: [&[&str]; 2] = [&["--time-scale", "0"], &["64MiB", "--seconds", "50ms"]];

#[test]
fn two_runs_on_the_simulated_disk_agree() {
    let place = WorkDir::new();
    let (mut close, mut all) = (0, 0);
    for (bench, more) in BENCHES.iter().zip(MORE) {
        for file in ["a.json", "b.json"] {
            let options = ["--drive", "deskstar-7k1000.c", "--json", file];
            let ended = place.run(&[bench, more, &options[..]].concat());
            if ended.stderr().contains("needs root") {
                return skip(&ended.stderr());
            }
            assert!(ended.0.status.success(), "{}", ended.stderr());
        }
        let ended = place.run(&["compare", "a.json", "b.json", "--json"]);
        let comparison: Value = serde_json::from_slice(&ended.0.stdout).unwrap();
        let count = |key: &str| comparison[key].as_u64().unwrap();
        assert_eq!(count("only_in_one"), 0, "{comparison:#}");
        assert_eq!(ended.0.status.code(), Some(i32::from(count("moved") > 0)));
        close += count("within_a_tenth");
        all += count("within_a_tenth") + count("within_intervals") + count("moved");
    }
    assert!(all >= 20 && close * 100 >= all * 95, "{close} of {all} agree within a tenth");
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
