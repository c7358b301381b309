//! Tests `haul probe`.

use std::fs;
use std::process::Stdio;

use haul_disk::probe;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::helper::TestDir;

fn is_empty(place: &TestDir) -> bool {
    fs::read_dir(place.path(".")).unwrap().next().is_none()
}

#[test]
fn probe_prints_properties_and_choices() {
    let place = TestDir::on_disk();
    let ended = place.run(&["probe", "."]).code(0);
    let found = probe(place.path(".")).unwrap().to_string();
    let (_, facts) = found.split_once('\n').unwrap();
    assert!(ended.text().contains(facts), "{}\n{facts}", ended.text());
    for words in ["choices of Haul", "log files", "durable writes", "read order"] {
        assert!(ended.text().contains(words), "{}", ended.text());
    }
    assert!(!ended.text().contains("per second"), "nothing was measured");

    place.write("file", "of it");
    let json: Value =
        serde_json::from_slice(place.run(&["probe", "--json", "file"]).code(0).stdout()).unwrap();
    assert_eq!(json["storage"]["path"], "file");
    assert_eq!(json["storage"]["file_system"], probe(".").unwrap().file_system.to_string());
    assert_eq!(json["measured"], Value::Null);
    let names: Vec<_> =
        json["choices"].as_array().unwrap().iter().map(|row| &row["what"]).collect();
    assert_eq!(names[0], "log_files");
}

#[test]
fn measurements_are_printed_as_text_and_json() {
    let (place, pictures) = (TestDir::on_disk(), TestDir::on_disk());
    let picture = pictures.path("disk.svg");
    let arguments =
        ["probe", "--measure", "--size", "16MiB", "--svg", picture.to_str().unwrap(), "."];
    let ended = place.run(&arguments).code(0);
    let picture = fs::read_to_string(picture).unwrap();
    assert!(
        picture.contains("class=\"cell h8\"") && picture.contains(">growing, pwrite"),
        "{picture}"
    );
    for words in ["pwrite + fdatasync", "growing", "not durable", "per second"] {
        assert!(ended.text().contains(words), "{}", ended.text());
    }
    assert!(is_empty(&place), "left behind");

    let arguments = ["probe", "--measure", "--size", "16MiB", "--json", "."];
    let json: Value = serde_json::from_slice(place.run(&arguments).code(0).stdout()).unwrap();
    let writes = json["measured"]["writes"].as_array().unwrap();
    assert_eq!(writes.len(), 7);
    let durable = writes.iter().filter(|row| row["durable"] == true).count();
    assert_eq!(durable, 6, "all but sync_file_range");
    assert!(writes.iter().any(|row| row["median_us"].as_f64().is_some_and(|us| us > 0.0)));
}

#[test]
fn interrupted_measurement_leaves_no_files() {
    let place = TestDir::on_disk();
    for signal in [Signal::INT, Signal::KILL] {
        let mut child = place
            .command(&["probe", "--measure", "--size", "1GiB", "."])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Once the scratch file is filled, the signal handlers are installed, too. (An empty file
        // without a name is made before, to learn what the file system permits.)
        let descriptors = format!("/proc/{}/fd", child.id());
        let has_scratch = || {
            fs::read_dir(&descriptors).unwrap().flatten().any(|entry| {
                fs::read_link(entry.path()).is_ok_and(|to| {
                    to.to_string_lossy().ends_with(" (deleted)") && to.starts_with(place.path(""))
                }) && fs::metadata(entry.path()).is_ok_and(|file| file.len() > 0)
            })
        };
        while !has_scratch() {
            assert!(child.try_wait().unwrap().is_none(), "exited too early");
            std::thread::yield_now();
        }
        kill_process(Pid::from_child(&child), signal).unwrap();
        let code = child.wait().unwrap().code();
        assert_eq!(code, (signal == Signal::INT).then_some(130));
        assert!(is_empty(&place), "left behind");
    }
}

#[test]
fn failures_are_reported() {
    let place = TestDir::on_disk();
    place.run(&["probe", "nowhere"]).code(3).stderr_contains(&["nowhere", "No such file"]);
    place.run(&["probe", "--svg", "disk.svg", "."]).code(2).stderr_contains(&["--measure"]);
    place.run(&["probe", "--size", "1GiB", "."]).code(2).stderr_contains(&["--measure"]);
    place.run(&["probe", "--measure", "--size", "1MiB", "."]).code(2).stderr_contains(&["16MiB"]);
}
