//! `haul bench all`: its reports, and what is left when it is stopped or killed.

use std::fs;
use std::process::{Child, Stdio};

use haul_testing::{DetachedImage, eventually, skip};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::work_dir::WorkDir;

const QUICK: &str =
    "all --quick --force --only disk,sequential-read --json all.json --markdown all.md";
const SLOW: &str = "all --dir d --force --only disk,pacing --json all.json --markdown all.md";

/// Starts a run whose second part takes long, and returns it once the first part is saved.
fn running(place: &WorkDir) -> Child {
    fs::create_dir(place.path("d")).unwrap();
    let mut command = place.command(&SLOW.split(' ').collect::<Vec<_>>());
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    eventually("the first part is saved", || place.path("all.md").exists());
    child
}

fn json(place: &WorkDir) -> Value {
    serde_json::from_slice(&fs::read(place.path("all.json")).unwrap()).unwrap()
}

fn is_empty(place: &WorkDir) -> bool {
    fs::read_dir(place.path("d")).unwrap().next().is_none()
}

#[test]
fn run_has_a_line_on_the_disk_and_an_answer_to_each_claim() {
    let place = WorkDir::on_disk();
    let ended = place.run_line(&format!("{QUICK} --dir .")).code(0);
    let json = json(&place);
    let line = json["line"].as_str().unwrap();
    assert!(line.contains(" on ") && ended.text().starts_with(&line[..20]), "{line}");
    assert_eq!(json["reports"][0]["bench"], "sequential-read");
    let claims = json["claims"].as_array().unwrap();
    let answers = ["yes", "no", "undecided"];
    assert!(claims.len() > 20);
    assert!(claims.iter().all(|it| answers.contains(&it["answer"].as_str().unwrap())));
    let read_claim = claims.iter().find(|it| it["ratio"] == "readahead_vs_none").unwrap();
    assert_ne!(read_claim["figure_here"], "not measured");
    let missing = json["missing"].as_array().unwrap();
    let why = "it was not selected with --only";
    assert!(missing.len() == 11 && missing.iter().all(|it| it["why"] == why), "{missing:?}");
    let page = fs::read_to_string(place.path("all.md")).unwrap();
    assert!(claims.iter().all(|it| page.contains(it["claim"].as_str().unwrap())), "{page}");
    assert_eq!(fs::read_dir(place.path("")).unwrap().count(), 2, "the two reports");
    let ended = place.run_line("compare all.json all.json").code(0);
    assert!(ended.text().contains("0 moved"), "{}", ended.text());
}

#[test]
fn part_that_does_not_fit_is_missing_and_the_others_are_measured() {
    let place = WorkDir::on_disk();
    let image = match DetachedImage::new("ext4", &["-q", "-F"], "", 100 << 20, &place.path("")) {
        Ok(image) => image,
        Err(why) => return skip(&why),
    };
    let own = format!("/proc/{}/", std::process::id());
    let dir = image.path().display().to_string().replace("/proc/self/", &own);
    place.run_line(&format!("{QUICK} --dir {dir}")).code(0);
    let json = json(&place);
    assert!(json["line"].is_null() && json["reports"][0]["bench"] == "sequential-read", "{json:#}");
    let disk = json["missing"].as_array().unwrap().iter().find(|it| it["part"] == "disk");
    assert!(disk.unwrap()["why"].as_str().unwrap().contains("MiB are free"), "{json:#}");
}

#[test]
fn stopped_and_killed_runs_keep_their_finished_parts_and_leave_no_test_files() {
    for signal in [Signal::INT, Signal::KILL] {
        let place = WorkDir::on_disk();
        let mut child = running(&place);
        kill_process(Pid::from_child(&child), signal).unwrap();
        let code = child.wait().unwrap().code();
        let json = json(&place);
        assert!(json["line"].is_string(), "{json:#}");
        if signal == Signal::INT {
            assert!(code == Some(130) && is_empty(&place), "test files");
            let mut missing = json["missing"].as_array().unwrap().iter();
            let stopped = missing.find(|it| it["part"] == "pacing").unwrap();
            assert!(stopped["why"].as_str().unwrap().contains("stopped"), "{json:#}");
        }
        eventually("the test files are gone", || is_empty(&place));
    }
}
