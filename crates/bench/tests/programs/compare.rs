//! `haul bench compare`: its exit codes.

use crate::work_dir::WorkDir;

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
