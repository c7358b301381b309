//! `haul bench write-modes`: its reports, and its cleanup when it is cancelled or killed.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Stdio};

use haul_testing::{eventually, mount_detached, skip};
use rustix::process::{Pid, Signal, kill_process};

use crate::work_dir::WorkDir;

/// Opens the tracing file system without a visible mount; `None` without root or kernel tracing.
fn tracing() -> Option<OwnedFd> {
    mount_detached("tracefs", "tracefs", "").ok()
}

/// Returns `true` if the process has a tracing instance.
fn has_instance(tracing: &OwnedFd, id: u32) -> bool {
    let dir = format!("/proc/self/fd/{}/instances", tracing.as_raw_fd());
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    names.into_iter().any(|name| name.to_string_lossy().starts_with(&format!("haul-{id}-")))
}

/// Returns `true` if a loop device reads from a file in `dir`.
fn has_loop_device(dir: &Path) -> bool {
    fs::read_dir("/sys/block").unwrap().any(|entry| {
        let file = entry.unwrap().path().join("loop/backing_file");
        let text = fs::read_to_string(file).unwrap_or_default();
        text.starts_with(&format!("{}/", dir.display()))
    })
}

const SIGNALS: [Signal; 2] = [Signal::INT, Signal::KILL];

fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).unwrap().next().is_none()
}

/// Starts a benchmark of a thousand rounds, and returns it once it measures.
fn measuring(place: &WorkDir, tracing: &OwnedFd, arguments: &[&str]) -> Child {
    let begin = ["write-modes", "--dir", "d", "--rounds", "1000"];
    let child = place
        .command(&[&begin, arguments].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("it measures", || has_instance(tracing, child.id()));
    child
}

#[test]
fn a_bench_reports_to_people_and_to_programs() {
    let place = WorkDir::new();
    fs::create_dir(place.path("d")).unwrap();
    let line = "write-modes --dir d --modes filled+fdatasync,append --sizes 4KiB --records 4 \
                --rounds 5 --json report --markdown report.md";
    let ended = place.run_line(line).code(0);
    assert!(ended.text().contains("records/s"), "{}", ended.text());

    let json = place.report();
    assert_eq!(json["bench"], "write-modes");
    for key in ["cpu", "cores", "memory_bytes", "kernel", "versions", "storage"] {
        assert!(json["host"].get(key).is_some(), "{key}");
    }
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 8, "two passes of append with seven syncs, and of one more");
    for row in rows.iter().filter(|row| row["state"] == "measured") {
        assert!(row["records_per_s"].as_f64().unwrap() > 0.0, "{row}");
        assert_eq!((&row["record_bytes"], &row["records"]), (&4096.into(), &20.into()));
    }
    let ratio = &json["ratios"]["recycled_vs_append_fdatasync_4k"];
    assert!(ratio.is_null(), "recycled was not measured");
    let command = json["circumstances"]["command"].as_str().unwrap();
    assert!(command.starts_with("haul bench write-modes --dir d"), "{command}");
    for end in ["start", "end"] {
        assert!(json["circumstances"]["load_average"][end].is_number(), "{end}");
    }
    let page = fs::read_to_string(place.path("report.md")).unwrap();
    assert!(page.contains("| fdatasync | 4,096 | 1 | filled |"), "{page}");
}

#[test]
fn a_bench_that_is_cancelled_or_killed_leaves_nothing_behind() {
    let Some(tracing) = tracing() else { return skip("no tracing file system, or no root") };
    let arguments = [&[][..], &["--virtual-disk", "ext4"], &["--virtual-disk", "xfs"]];
    for (arguments, signal) in arguments.iter().flat_map(|it| SIGNALS.map(|signal| (it, signal))) {
        let place = WorkDir::new();
        fs::create_dir(place.path("d")).unwrap();
        let dir = place.path("d").canonicalize().unwrap();
        let mut child = measuring(&place, &tracing, arguments);
        assert_eq!(has_loop_device(&dir), !arguments.is_empty());
        kill_process(Pid::from_child(&child), signal).unwrap();
        let code = child.wait().unwrap().code();
        if signal == Signal::INT {
            assert_eq!(code, Some(130));
            assert!(
                !has_instance(&tracing, child.id()) && is_empty(&dir),
                "removed before the end"
            );
        }
        eventually("the tracing instance is gone", || !has_instance(&tracing, child.id()));
        // Another process that searches for a free loop device may keep this one open for a moment.
        eventually("the loop device is gone", || !has_loop_device(&dir));
        eventually("the files are gone", || is_empty(&dir));
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(&*dir.to_string_lossy()), "{mounts}");
    }
}
