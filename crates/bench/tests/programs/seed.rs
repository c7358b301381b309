//! `haul bench seed`: an experiment reports to a terminal and as JSON, and leaves no files.

use std::fs;

use serde_json::Value;

use crate::work_dir::WorkDir;

#[test]
fn experiment_reports_the_figures_of_the_text_and_leaves_no_files() {
    let place = WorkDir::on_disk();
    fs::create_dir(place.path("d")).unwrap();
    let sizes = ["--bytes", "16KiB", "--synced-bytes", "8KiB", "--rounds", "1"];
    let arguments = ["seed", "fill", "--dir", "d", "--json", "report.json"];
    let ended = place.run(&[&arguments[..], &sizes].concat()).code(0);
    assert!(ended.text().contains("Figures of the text"), "{}", ended.text());
    assert_eq!(fs::read_dir(place.path("d")).unwrap().count(), 0, "left behind");
    let json: Value =
        serde_json::from_slice(&fs::read(place.path("report.json")).unwrap()).unwrap();
    assert_eq!(json["bench"], "seed fill");
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4 * 5 * 2);
    for row in rows {
        let records = if row["sync"] == "none" { 4 } else { 2 };
        assert_eq!(row["records"], records, "{row}");
    }
    assert!(json["ratios"]["filled_vs_append_fsync"]["value"].as_f64().unwrap() > 0.0);
}

#[test]
fn missing_space_is_an_error_that_names_the_directory() {
    let place = WorkDir::on_disk();
    let ended = place.run(&["seed", "fill", "--dir", ".", "--bytes", "1TiB"]);
    assert_ne!(ended.0.status.code(), Some(0));
    let message = String::from_utf8_lossy(&ended.0.stderr).into_owned();
    assert!(message.contains("free space, and the experiment needs"), "{message}");
}
