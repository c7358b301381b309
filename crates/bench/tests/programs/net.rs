//! Runs the benchmarks of servers for a short time, and checks the rows of `haul`.

use serde_json::Value;

use crate::work_dir::WorkDir;

/// Returns the report of a short run, or `None` if there is only one core.
fn report(words: &[&str]) -> Option<Value> {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        haul_testing::skip("a server and its load need a core each");
        return None;
    }
    let place = WorkDir::on_disk();
    std::fs::create_dir(place.path("d")).unwrap();
    let begin = [words[0], "--dir", "d", "--rounds", "1", "--json", "report"];
    let haul = haul_testing::program("haul");
    let program = ["--program", haul.to_str().unwrap()];
    let time: &[_] = if ["serve", "s3"].contains(&words[0]) { &[] } else { &["--seconds", "30ms"] };
    place.run(&[&begin[..], &program, time, &words[1..]].concat()).code(0);
    assert_eq!(std::fs::read_dir(place.path("d")).unwrap().count(), 0, "left behind");
    let report = std::fs::read(place.path("report")).unwrap();
    Some(serde_json::from_slice(&report).unwrap())
}

fn of<'a>(report: &'a Value, program: &'a str, key: &'a str) -> impl Iterator<Item = &'a Value> {
    let rows = report["rows"].as_array().unwrap().iter();
    rows.filter(move |row| row[key] == program)
}

#[test]
fn haul_files_is_measured_with_correct_responses() {
    let sizes = ["--sizes", "1KiB,100KiB", "--files", "20", "--big", "2MiB", "--big-files", "3"];
    let words = [&["files", "--only", "hot,warm,cold"][..], &sizes].concat();
    let Some(report) = report(&words) else { return };
    let ours: Vec<_> = of(&report, "haul", "server").collect();
    // Each of the four workloads has two rows, because `haul` is measured twice. The cold workload
    // has a third row, for `--cold splice`.
    assert_eq!(ours.len(), 2 * 4 + 1, "{ours:?}");
    for row in ours {
        assert_eq!(row["state"], "measured", "{row}");
        let rate = if row["load"].as_str().unwrap().starts_with("hot") {
            &row["requests_per_s"]
        } else {
            &row["mib_per_s"]
        };
        assert!(rate.as_f64().unwrap() > 0.0, "{row}");
    }
    assert!(report["ratios"]["cold_cpu_per_gb_splice_vs_copy"]["value"].as_f64().unwrap() > 0.0);
}

#[test]
fn latency_of_hot_files_is_measured_during_downloads() {
    let sizes = ["--memory", "48MiB", "--big", "2MiB", "--big-files", "3", "--connections", "4"];
    let words = [&["files", "--only", "latency"][..], &sizes].concat();
    let Some(report) = report(&words) else { return };
    if report["rows"].as_array().unwrap().is_empty() {
        return haul_testing::skip("there is no memory cgroup");
    }
    for load in ["at rest", "beside downloads"] {
        let rows: Vec<_> = of(&report, load, "load").collect();
        // There are six rows if nginx is installed, otherwise three.
        assert!(rows.len() == 3 || rows.len() == 6, "{rows:?}");
        for row in rows {
            assert_eq!(row["state"], "measured", "{row}");
            assert!(row["p50_us"].as_f64().unwrap() <= row["p99_us"].as_f64().unwrap(), "{row}");
            let downloaded = row["mib_per_s"].as_f64().unwrap() > 0.0;
            assert_eq!(downloaded, load == "beside downloads", "{row}");
        }
    }
}

#[test]
fn haul_files_is_measured_over_tls() {
    let Some(report) = report(&["files", "--only", "tls", "--files", "4"]) else { return };
    for load in ["TLS, 4k", "TLS, 1m"] {
        let rows = of(&report, load, "load").filter(|row| row["server"] == "haul");
        let rows: Vec<_> =
            rows.inspect(|row| assert_eq!(row["state"], "measured", "{row}")).collect();
        assert_eq!(rows.len(), 2, "{rows:?}");
    }
}

#[test]
fn haul_serve_is_measured_anonymous_and_signed() {
    let sizes = ["--sizes", "4KiB,100KiB,5MiB", "--requests", "200", "--puts", "200"];
    let words = [&["serve", "--connections", "4"][..], &sizes].concat();
    let Some(report) = report(&words) else { return };
    for load in ["GET 4k", "GET 100k", "GET 5m", "PUT 4k, new keys", "PUT 4k, overwrites"] {
        let rows: Vec<_> =
            of(&report, load, "load").filter(|row| row["server"] == "haul").collect();
        // Anonymous, again, signed, and files or Store::put.
        assert_eq!(rows.len(), 4, "{rows:?}");
        for row in rows {
            assert_eq!(row["state"], "measured", "{row}");
            assert!(row["process_us"].as_f64().unwrap() > 0.0, "{row}");
            assert!(row["requests_per_s"].as_f64().unwrap() > 0.0, "{row}");
        }
    }
    let ratios = &report["ratios"];
    for key in ["get_4k_signed_cpu_vs_files", "put_4k_overwrite_cpu_vs_store"] {
        assert!(ratios[key]["value"].as_f64().unwrap() > 0.0, "{key}");
    }
}

#[test]
fn haul_serve_is_measured_beside_other_s3_servers() {
    let counts = ["--puts", "50", "--gets", "100", "--list-keys", "2500", "--sizes", "4KiB"];
    for (signature, note) in [("header", "in the header"), ("presigned", "UNSIGNED-PAYLOAD")] {
        let words = ["s3", "--connections", "4", "--signature", signature];
        let Some(report) = report(&[&words[..], &counts].concat()) else { return };
        let notes = report["notes"].to_string();
        assert!(notes.contains(note), "{notes}");
        for load in ["PUT 4k", "GET 4k", "LIST 2500 keys"] {
            let rows: Vec<_> =
                of(&report, load, "load").filter(|row| row["server"] == "haul").collect();
            assert_eq!(rows.len(), 2, "{rows:?}");
            for row in rows {
                assert_eq!(row["state"], "measured", "{row}");
                assert!(row["per_s"].as_f64().unwrap() > 0.0, "{row}");
            }
        }
    }
}

#[test]
fn haul_relay_is_measured_in_each_move_mode() {
    let words = ["relay", "--sizes", "64,200KiB", "--flows", "1,3", "--rivals", "tokio"];
    let Some(report) = report(&words) else { return };
    for setting in ["auto", "auto, again", "copy", "splice"] {
        let rows: Vec<_> =
            of(&report, "haul", "relay").filter(|row| row["setting"] == setting).collect();
        assert_eq!(rows.len(), if setting == "auto, again" { 8 } else { 9 }, "{rows:?}");
        assert!(rows.iter().all(|row| row["state"] == "measured"), "{rows:?}");
    }
    let ratios = &report["ratios"];
    for key in ["adaptive_message_64_cpu_vs_best_own", "adaptive_message_200k_cpu_vs_best_own"] {
        assert!(ratios[key]["value"].as_f64().unwrap() > 0.0, "{key}");
    }
    assert_eq!(ratios["descriptors_per_idle_connection_haul_auto"]["value"], 2.0);
    let pipes = &ratios["pipes_per_connection_haul_auto"]["value"];
    assert!(pipes.is_null() || *pipes == 0.0, "{pipes}");
}

#[test]
fn missing_program_of_an_option_is_an_error() {
    let place = WorkDir::new();
    for words in [
        ["relay", "--dir", ".", "--compare", "nowhere"],
        ["relay", "--dir", ".", "--program", "nowhere"],
        ["files", "--dir", ".", "--program", "nowhere"],
        ["serve", "--dir", ".", "--program", "nowhere"],
    ] {
        place.run(&words).code(1).stderr_contains(&["cannot find the program nowhere"]);
    }
}
