//! Runs `haul bench log` with a small load, and checks its report and errors.

use crate::work_dir::{WorkDir, report};

#[test]
fn log_is_measured_with_its_floor() {
    // The program `true` prints an empty list of rivals, so none are measured.
    let report = report("log --dir d --writers 1,3 --rounds 1 --seconds 300ms --rivals true");
    let rows = report["rows"].as_array().unwrap();
    let state = |log: &str| rows.iter().find(|row| row["log"] == log).unwrap()["state"].clone();
    for log in ["haul", "raw/direct-fdatasync", "raw/direct-dsync", "growing-file"] {
        assert_eq!(state(log), "measured");
    }
    for rival in ["okaywal", "walrus", "raft-engine", "rocksdb", "sqlite"] {
        assert!(state(rival).as_str().unwrap().contains("docs/log-bench.md"));
    }
    let ratios = report["ratios"].as_object().unwrap();
    for key in ["log_vs_raw_1w", "log_vs_growing_file_1w"] {
        assert!(ratios[key]["value"].as_f64().unwrap() > 0.0, "{key}: {ratios:?}");
    }
    assert!(!ratios.contains_key("log_vs_okaywal_16w"), "it was not there");
    // The device is unknown where the storage is not a block device, and its counts are not those of
    // the log if other processes write meanwhile.
    let value = |key: &str| ratios.get(key).map(|ratio| ratio["value"].as_f64().unwrap());
    let payload = value("device_bytes_per_payload_byte");
    if let (Some(padded), Some(payload)) = (value("device_bytes_per_padded_byte"), payload) {
        assert!(payload > padded, "headers and padding are no payload: {ratios:?}");
    }
    // Another measurement than the others: only its own writes and those of others are in it.
    if let Some(page_bytes) = value("device_bytes_per_payload_byte_of_pages") {
        assert!(page_bytes >= 1.0, "each byte is written once at least: {ratios:?}");
    }
}

#[test]
fn missing_rivals_program_is_reported_before_any_measurement() {
    let place = WorkDir::new();
    let ended = place.run_line("log --dir . --rivals no/such/program");
    ended.code(1).stderr_contains(&["no/such/program"]);
    assert_eq!(std::fs::read_dir(place.path("")).unwrap().count(), 0);
}
