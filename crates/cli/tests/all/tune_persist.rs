//! Tests `haul tune --persist` and `--revert`, on machines described by copied /proc and /sys files.

use std::fs;

use serde_json::{Value, json};

use crate::helper::{Finished, TestDir};
use crate::tune::{ALL, BACKGROUND, LIMIT, READAHEAD, SCHEDULER, setting, spinning_machine, tune};

const SYSCTL: &str = "machine/etc/sysctl.d/90-haul.conf";
const UDEV: &str = "machine/etc/udev/rules.d/90-haul.rules";

fn machine() -> TestDir {
    let place = TestDir::new();
    spinning_machine(&place);
    place
}

fn persist(place: &TestDir, rate: &str) -> Finished {
    tune(place, &["--rate", rate, "--persist"])
}

fn read(place: &TestDir, name: &str) -> String {
    fs::read_to_string(place.path(name)).unwrap()
}

/// Returns the names of the files in the folders of both files.
fn names(place: &TestDir) -> Vec<String> {
    let folders = ["machine/etc/sysctl.d", "machine/etc/udev/rules.d"];
    let entries = folders.iter().filter_map(|folder| fs::read_dir(place.path(folder)).ok());
    entries.flatten().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn persisted_settings_are_in_effect_and_in_files() {
    let place = machine();
    let ended = persist(&place, "20MiB").code(0);
    let expected = ["16777216", "100663296", "1024", "mq-deadline"].map(str::to_owned);
    assert_eq!(ALL.map(|path| setting(&place, path)), expected);
    let text = ended.text();
    for words in [
        "changed\n  vm.dirty_background_bytes: 10 % (by ratio) → 16777216",
        "wrote /etc/sysctl.d/90-haul.conf\n",
        "\n  vm.dirty_bytes = 100663296\n",
        "wrote /etc/udev/rules.d/90-haul.rules\n",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    let sysctl = read(&place, SYSCTL);
    let lines: Vec<_> = sysctl.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(lines, ["vm.dirty_background_bytes = 16777216", "vm.dirty_bytes = 100663296"]);
    let udev = read(&place, UDEV);
    let rule = "ACTION==\"add|change\", SUBSYSTEM==\"block\", KERNEL==\"sda\", \
                ATTR{queue/scheduler}=\"mq-deadline\"\n";
    assert!(udev.contains(rule), "{udev}");
    assert_eq!(names(&place), ["90-haul.conf", "90-haul.rules"], "no other file");

    let again = persist(&place, "20MiB").code(0);
    let expected = "no settings to change\nno file to write; ";
    assert!(again.text().contains(expected), "{}", again.text());
    assert_eq!((read(&place, SYSCTL), read(&place, UDEV)), (sysctl, udev));
}

#[test]
fn reverted_settings_have_the_values_before_the_first_change() {
    let place = machine();
    persist(&place, "20MiB").code(0);
    persist(&place, "5MiB").code(0);
    assert!(read(&place, SYSCTL).contains("\nvm.dirty_bytes = 16777216\n"));
    let shown = tune(&place, &["--revert", "--dry-run"]).code(0);
    assert!(shown.text().starts_with("would restore\n  "), "{}", shown.text());
    assert_eq!((setting(&place, SCHEDULER), names(&place).len()), ("mq-deadline".to_owned(), 2));

    place.write("machine/proc/sys/vm/dirty_ratio", "0\n");
    let ended = tune(&place, &["--revert", "--json"]).code(0);
    let report: Value = serde_json::from_slice(ended.stdout()).unwrap();
    let restored: Vec<_> = report["restored"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["path"].as_str().unwrap(), one["value"].as_str().unwrap()))
        .collect();
    assert_eq!(
        restored,
        [
            (SCHEDULER, "none"),
            (READAHEAD, "128"),
            ("/proc/sys/vm/dirty_ratio", "20"),
            ("/proc/sys/vm/dirty_background_ratio", "10"),
        ]
    );
    assert_eq!((&report["left"], &report["dry_run"]), (&json!([]), &json!(false)));
    assert_eq!(report["removed"].as_array().unwrap().len(), 2);
    assert_eq!(
        (setting(&place, SCHEDULER), setting(&place, READAHEAD)),
        ("none".into(), "128".into())
    );
    assert_eq!(setting(&place, "/proc/sys/vm/dirty_ratio"), "20");
    assert_eq!(names(&place), [""; 0]);
    tune(&place, &["--revert"]).code(0).stderr_contains(&["nothing to revert"]);
}

#[test]
fn dry_run_of_persist_writes_nothing() {
    let place = machine();
    let before = ALL.map(|path| setting(&place, path));
    let ended = tune(&place, &["--rate", "20MiB", "--persist", "--dry-run"]).code(0);
    for words in ["would change\n", "would write /etc/sysctl.d/90-haul.conf\n"] {
        assert!(ended.text().contains(words), "{words}\n{}", ended.text());
    }
    assert_eq!(ALL.map(|path| setting(&place, path)), before);
    assert_eq!(names(&place), [""; 0]);
    let ended = tune(&place, &["--rate", "20MiB", "--persist", "--json"]).code(0);
    let json: Value = serde_json::from_slice(ended.stdout()).unwrap();
    let files = ["/etc/sysctl.d/90-haul.conf", "/etc/udev/rules.d/90-haul.rules"];
    assert_eq!(json["applied"]["persisted"], json!(files));
}

#[test]
fn files_of_other_programs_and_changed_files_stay() {
    for (file, change) in [(SYSCTL, "vm.swappiness = 1\n"), (UDEV, "# mine\n")] {
        let place = machine();
        place.write(file, change);
        let before = ALL.map(|path| setting(&place, path));
        for arguments in [&["--rate", "20MiB", "--persist"][..], &["--revert"]] {
            tune(&place, arguments).code(3).stderr_contains(&[
                "nothing was changed",
                file.rsplit('/').next().unwrap(),
                "was not written by",
            ]);
            assert_eq!(read(&place, file), change);
        }
        assert_eq!(ALL.map(|path| setting(&place, path)), before);
        assert_eq!(names(&place).len(), 1);
    }
    let place = machine();
    persist(&place, "20MiB").code(0);
    let edited = read(&place, SYSCTL).replace("100663296", "200000000") + "# mine\n";
    place.write(SYSCTL, &edited);
    tune(&place, &["--revert"]).code(3).stderr_contains(&["nothing was changed", "changed since"]);
    assert_eq!((read(&place, SYSCTL), setting(&place, SCHEDULER)), (edited, "mq-deadline".into()));
}

#[test]
fn setting_changed_since_is_left_as_it_is() {
    let place = machine();
    persist(&place, "20MiB").code(0);
    place.write(format!("machine{READAHEAD}"), "4096\n");
    fs::remove_file(place.path(format!("machine{SCHEDULER}"))).unwrap();
    let ended = tune(&place, &["--revert"]).code(0);
    for words in [
        &format!("left as it is: {READAHEAD} has changed from 1024 to 4096 since"),
        &format!("left as it is: {SCHEDULER} does not exist now"),
        "\nremoved ",
    ] {
        assert!(ended.text().contains(words), "{words}\n{}", ended.text());
    }
    assert_eq!(setting(&place, READAHEAD), "4096");
    assert_eq!(names(&place), [""; 0]);
    assert_eq!(setting(&place, "/proc/sys/vm/dirty_background_ratio"), "10");
    // The files of the test machine are plain: a ratio does not reset the limit in bytes.
    assert_ne!((setting(&place, BACKGROUND), setting(&place, LIMIT)), ("0".into(), "0".into()));
}

#[test]
fn options_that_change_nothing_or_contradict_are_refused() {
    let place = TestDir::new();
    for arguments in [
        &["tune", "--revert", "--persist"][..],
        &["tune", "--revert", "--measure"],
        &["tune", "--revert", "."],
        &["tune", "--revert", "--undo-to", "x"],
        &["tune", "--undo-to", "x"],
    ] {
        place.run(arguments).code(2).stderr_contains(&["--help"]);
    }
}
