//! Tests `haul tune` on the test machine, and on machines described by copied /proc and /sys files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use haul_testing::LoopImage;
use serde_json::Value;

use crate::helper::{Finished, TestDir};

/// Writes /proc and /sys files below the directory `machine`. They describe a machine with a
/// rotational disk, on which 8 GiB of memory are available for dirty data.
pub(crate) fn spinning_machine(place: &TestDir) {
    for (name, value) in [
        ("dirty_background_ratio", "10"),
        ("dirty_background_bytes", "0"),
        ("dirty_ratio", "20"),
        ("dirty_bytes", "0"),
        ("dirty_expire_centisecs", "3000"),
        ("dirty_writeback_centisecs", "500"),
    ] {
        place.write(format!("machine/proc/sys/vm/{name}"), format!("{value}\n"));
    }
    let meminfo = "MemTotal: 16777216 kB\nMemFree: 4194304 kB\nActive(file): 1048576 kB\n\
                   Inactive(file): 3145728 kB\nDirty: 1024 kB\nWriteback: 0 kB\nSwapTotal: 0 kB\n";
    place.write("machine/proc/meminfo", meminfo);
    let mounts = "27 1 8:0 / /srv rw,noatime - ext4 /dev/sda rw,data=ordered\n\
                  28 1 8:0 / /ro ro - ext4 /dev/sda ro\n";
    place.write("machine/proc/self/mountinfo", mounts);
    for (name, value) in [
        ("rotational", "1"),
        ("write_cache", "write back"),
        ("read_ahead_kb", "128"),
        ("nr_requests", "64"),
        ("scheduler", "[none] mq-deadline bfq"),
        ("wbt_lat_usec", "75000"),
    ] {
        place.write(format!("machine/sys/block/sda/queue/{name}"), format!("{value}\n"));
    }
    place.write("machine/sys/devices/sda/dev", "8:0\n");
    fs::create_dir_all(place.path("machine/sys/dev/block")).unwrap();
    symlink("../../devices/sda", place.path("machine/sys/dev/block/8:0")).unwrap();
}

pub(crate) fn tune(place: &TestDir, arguments: &[&str]) -> Finished {
    place.run(&[&["tune", "--all", "--system-root", "machine"], arguments].concat())
}

/// Joins the wrapped lines of the output.
fn joined(ended: &Finished) -> String {
    ended.text().split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(crate) fn setting(place: &TestDir, path: &str) -> String {
    let path = place.path(format!("machine{path}"));
    fs::read_to_string(path).unwrap().trim().to_owned()
}

pub(crate) const READAHEAD: &str = "/sys/block/sda/queue/read_ahead_kb";
pub(crate) const SCHEDULER: &str = "/sys/block/sda/queue/scheduler";
pub(crate) const LIMIT: &str = "/proc/sys/vm/dirty_bytes";
pub(crate) const BACKGROUND: &str = "/proc/sys/vm/dirty_background_bytes";
pub(crate) const ALL: [&str; 4] = [BACKGROUND, LIMIT, READAHEAD, SCHEDULER];

#[test]
fn stalls_are_explained_with_recommendations() {
    let place = TestDir::new();
    spinning_machine(&place);
    let ended = tune(&place, &[]).code(0);
    let text = joined(&ended);
    for words in [
        "8 GiB of 16 GiB is available for dirty data",
        "Background writeback starts at 818 MiB of dirty data (10 % of the 8 GiB available)",
        "blocked at 1.6 GiB (20 % of the 8 GiB available) until",
        "On /srv (ext4 on sda), at 80 MiB to 250 MiB/s (typical of a rotational disk), writing 1.6 GiB",
        "use --measure for a better estimate",
        "--apply sets sda: read_ahead_kb: 128 → 1024",
        "--apply sets sda: scheduler: none → mq-deadline",
        "/etc/udev/rules.d/90-haul.rules",
    ] {
        assert!(text.contains(words), "{words}\n{}", ended.text());
    }
    assert!(!text.contains("/ro"), "it has no writers: {text}");
    assert!(!text.contains("vm.dirty_bytes:"), "7 s in the best case: {text}");

    let ended = tune(&place, &["--rate", "20MiB", "--json"]).code(0);
    let json: Value = serde_json::from_slice(ended.stdout()).unwrap();
    assert_eq!(json["machine"]["memory"]["available_to_writers_bytes"], 8_u64 << 30);
    assert_eq!(json["machine"]["limits"]["wait_bytes"], (8_u64 << 30) / 4096 * 819);
    assert_eq!(json["file_systems"][0]["point"], "/srv");
    assert_eq!(json["file_systems"].as_array().unwrap().len(), 1);
    assert_eq!(json["file_systems"][0]["rate"]["known"], "given");
    let stall =
        json["findings"].as_array().unwrap().iter().find(|one| one["what"] == "long_stalls");
    assert_eq!(stall.unwrap()["set"][1]["new"], (96_u64 << 20).to_string());
    assert_eq!(json["applied"], Value::Null);
}

#[test]
fn applied_settings_are_printed_and_can_be_undone() {
    let place = TestDir::new();
    spinning_machine(&place);
    let before = ALL.map(|path| setting(&place, path));
    let arguments = ["--rate", "20MiB", "--apply"];

    let shown = tune(&place, &[&arguments[..], &["--dry-run"]].concat()).code(0);
    assert!(shown.text().contains("would change\n  vm.dirty_background_bytes: 10 % (by ratio) → "));
    assert_eq!(ALL.map(|path| setting(&place, path)), before, "printed only");

    let set = tune(&place, &[&arguments[..], &["--undo-to", "undo"]].concat()).code(0);
    let after = ALL.map(|path| setting(&place, path));
    assert_eq!(after, ["16777216", "100663296", "1024", "mq-deadline"].map(str::to_owned));
    for (path, line) in [
        (BACKGROUND, "undo: echo 10 > /proc/sys/vm/dirty_background_ratio"),
        (LIMIT, "undo: echo 20 > /proc/sys/vm/dirty_ratio"),
        (READAHEAD, "undo: echo 128 > /sys/block/sda/queue/read_ahead_kb"),
        (SCHEDULER, "undo: echo none > /sys/block/sda/queue/scheduler"),
    ] {
        assert!(set.text().contains(line), "{path}: {}", set.text());
        let script = fs::read_to_string(place.path("undo")).unwrap();
        assert!(script.contains(&line["undo: ".len()..]), "{script}");
    }

    // All recommended settings are in effect now, so a second run changes nothing.
    let again = tune(&place, &arguments).code(0);
    assert!(again.text().contains("\nno settings to change\n"), "{}", again.text());
}

#[test]
fn applied_settings_are_reported_as_json() {
    let place = TestDir::new();
    spinning_machine(&place);
    let set = tune(&place, &["--rate", "20MiB", "--apply", "--json"]).code(0);
    let json: Value = serde_json::from_slice(set.stdout()).unwrap();
    let paths: Vec<_> =
        json["applied"]["set"].as_array().unwrap().iter().map(|one| &one["path"]).collect();
    assert_eq!(paths, ALL);
    assert_eq!(json["applied"]["failed"], Value::Null);
}

#[test]
fn existing_undo_script_is_not_overwritten() {
    let place = TestDir::new();
    spinning_machine(&place);
    place.write("undo", "older");
    let arguments = ["--apply", "--undo-to", "undo"];
    tune(&place, &arguments).code(3).stderr_contains(&[
        "nothing was changed",
        "undo",
        "older settings",
    ]);
    assert_eq!(fs::read(place.path("undo")).unwrap(), b"older");
    assert_eq!(setting(&place, READAHEAD), "128");
}

/// Replaces the file of a setting with a link to `with`, a file of the real /proc to which the
/// kernel rejects some writes.
fn replace(place: &TestDir, path: &str, with: &str) {
    let path = place.path(format!("machine{path}"));
    fs::remove_file(&path).unwrap();
    symlink(with, path).unwrap();
}

#[test]
fn nothing_changes_if_one_setting_is_not_writable() {
    let place = TestDir::new();
    spinning_machine(&place);
    // This file is not writable even by root.
    replace(&place, LIMIT, "/proc/sys/kernel/ngroups_max");
    let set = tune(&place, &["--rate", "400MiB", "--apply", "--undo-to", "undo"]).code(3);
    let set =
        set.stderr_contains(&["nothing was changed", "dirty_bytes", "sudo haul tune --apply"]);
    assert!(set.text().contains("writeback and stalls") && !set.text().contains("\nchanged\n"));
    assert_eq!(setting(&place, SCHEDULER), "[none] mq-deadline bfq");
    assert!(!place.path("undo").exists());
}

#[test]
fn partial_failure_lists_changes_and_undo_commands() {
    let place = TestDir::new();
    spinning_machine(&place);
    // A process of any user may write this file, but the kernel rejects values above 1000.
    replace(&place, READAHEAD, "/proc/self/oom_score_adj");
    let shell = "echo 300 > /proc/self/oom_score_adj && exec \"$0\" tune --all --system-root machine \
                 --rate 20MiB --apply --undo-to undo";
    let output = Command::new("sh")
        .args(["-c", shell, env!("CARGO_BIN_EXE_haul")])
        .current_dir(place.path(""))
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    for words in [
        "cannot set sda: read_ahead_kb",
        "Invalid argument",
        "earlier changes remain",
        "\n  echo 20 > /proc/sys/vm/dirty_ratio\n  echo 10 > /proc/sys/vm/dirty_background_ratio",
    ] {
        assert!(stderr.contains(words), "{words}\n{stderr}");
    }
    assert!(!stderr.contains("scheduler"), "not tried: {stderr}");
    assert_eq!(setting(&place, LIMIT), "100663296");
    assert_eq!(setting(&place, SCHEDULER), "[none] mq-deadline bfq");
    assert!(place.path("undo").exists(), "written before any change");
}

#[test]
fn incomplete_machine_is_examined_as_far_as_possible() {
    let place = TestDir::new();
    fs::create_dir(place.path("machine")).unwrap();
    let ended = tune(&place, &["--apply"]).code(0);
    for words in ["unknown", "/proc/meminfo is missing", "no settings to change"] {
        assert!(ended.text().contains(words), "{words}\n{}", ended.text());
    }
    spinning_machine(&place);
    place.write("machine/proc/sys/vm/dirty_ratio", "much\u{1b}[2J\n");
    place.write("machine/sys/block/sda/queue/scheduler", [0xff, 0xfe, b'\n']);
    let ended = tune(&place, &[]).code(0);
    assert!(ended.text().contains("dirty_ratio contains \"much"), "{}", ended.text());
    assert!(!ended.text().contains('\u{1b}'), "control characters are escaped");
}

#[test]
fn this_machine_is_measured_and_no_file_is_left() {
    let place = TestDir::on_disk();
    place.write("file", "of it");
    let ended = place.run(&["tune", "--measure", "--json", "file"]).code(0);
    let json: Value = serde_json::from_slice(ended.stdout()).unwrap();
    assert!(json["machine"]["limits"]["wait_bytes"].as_u64().unwrap() > 0);
    let [file_system] = json["file_systems"].as_array().unwrap().as_slice() else {
        panic!("{json}")
    };
    if !file_system["device"].is_null() {
        assert_eq!(file_system["rate"]["known"], "measured");
        assert!(file_system["rate"]["low_bytes_per_s"].as_u64().unwrap() > 0);
    }
    assert_eq!(fs::read_dir(place.path("")).unwrap().count(), 1, "left behind");
    place.run(&["tune"]).code(0);
    let memory = place.run(&["tune", "/dev/shm"]).code(0);
    assert!(memory.text().contains("file system in memory"), "{}", memory.text());
}

#[test]
fn real_setting_is_changed_and_undone() {
    // The test changes a setting of a loop device only: at this rate the dirty limits of the test
    // machine need no change.
    let Some(image) = LoopImage::new("ext4", 64 << 20) else { return };
    let place = TestDir::on_disk();
    let readahead = format!("/sys/block/{}/queue/read_ahead_kb", image.device());
    fs::write(&readahead, "0").unwrap();
    let now = || fs::read_to_string(&readahead).unwrap().trim().to_owned();
    let mount = image.mount().to_str().unwrap();
    let arguments = ["tune", "--rate", "10GiB", "--apply", "--undo-to", "undo", mount];
    let set = place.run(&arguments).code(0);
    let name = format!("  {}: read_ahead_kb: 0 → ", image.device());
    assert!(set.text().contains(&name), "{}", set.text());
    assert!(!set.text().contains("  vm."), "{}", set.text());
    assert_ne!(now(), "0");
    let undone = Command::new("sh").arg(place.path("undo")).status().unwrap();
    assert!(undone.success());
    assert_eq!(now(), "0");
}

#[test]
fn rate_of_a_loop_device_does_not_set_dirty_limits() {
    let Some(image) = LoopImage::new("ext4", 300 << 20) else { return };
    let place = TestDir::new();
    let mount = image.mount().to_str().unwrap();
    let arguments = ["tune", "--measure", "--apply", "--dry-run", "--json", mount];
    let ended = place.run(&arguments).code(0);
    let json: Value = serde_json::from_slice(ended.stdout()).unwrap();
    assert_eq!(json["file_systems"][0]["rate"]["known"], "measured");
    let findings = json["findings"].as_array().unwrap();
    let sets_limits =
        |finding: &&Value| finding.to_string().contains("vm/dirty") && finding["about"] != "memory";
    assert_eq!(findings.iter().filter(sets_limits).count(), 0, "{findings:?}");
    // On a busy machine, the list has further reasons.
    let refused = json["applied"]["refused"].to_string();
    assert!(refused.contains("loop device"), "{refused}");
}

#[test]
fn disk_with_little_space_is_not_measured() {
    let Some(image) = LoopImage::new("ext4", 32 << 20) else { return };
    let place = TestDir::new();
    let mount = image.mount().to_str().unwrap();
    let ended = place
        .run(&["tune", "--measure", mount])
        .code(1)
        .stderr_contains(&["too little to measure"]);
    assert!(joined(&ended).contains("(typical of a loop device)"));
}

#[test]
fn invalid_arguments_are_refused() {
    let place = TestDir::new();
    place.run(&["tune", "nowhere"]).code(3).stderr_contains(&["nowhere", "No such file"]);
    for arguments in [
        &["tune", "--all", "."][..],
        &["tune", "--dry-run"],
        &["tune", "--undo-to", "x"],
        &["tune", "--rate", "1MiB", "--measure"],
        &["tune", "--rate", "fast"],
    ] {
        place.run(arguments).code(2).stderr_contains(&["--help"]);
    }
    assert!(!place.path("x").exists() && Path::new("/proc").exists());
}
