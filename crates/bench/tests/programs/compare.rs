//! `haul bench compare`: the ratios of two reports, and its exit codes.

use crate::work_dir::{WorkDir, report_unless};

#[test]
fn each_ratio_of_a_report_agrees_with_itself() {
    let line = "random-write --drive deskstar-7k1000.c --records 400 --batches 1000 \
                --file-size 64MiB";
    let Some(report) = report_unless(line, &["needs root"]) else { return };
    let place = WorkDir::new();
    std::fs::write(place.path("a.json"), report.to_string()).unwrap();
    let ended = place.run_line("compare a.json a.json").code(0);
    let count = report["ratios"].as_object().unwrap().len();
    let expected = format!("{count} of {count} ratios agree within a tenth");
    assert!(count >= 15 && ended.text().contains(&expected), "{}", ended.text());
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
