//! Tests that POSIX shells can run the scripts of dry runs for any names of files.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::helper::TestDir;

/// Names that a shell interprets if they are not quoted.
const NAMES: [&[u8]; 12] = [
    b"plain",
    b"two words",
    b"new\nline",
    b"ends with newline\n",
    b"it's",
    b"\"$HOME\"",
    b"$(touch pwned)",
    b"`touch pwned`; touch pwned",
    b"back\\slash\\",
    b"\xff\xfe not UTF-8",
    b"\x01\x1b[31m control",
    b"-rf * ? [a] ~ # & | < >",
];

/// Creates equal files `keep/NAME` and `drop/NAME` for each name.
fn place() -> TestDir {
    let place = TestDir::new();
    for (number, name) in NAMES.iter().enumerate() {
        for dir in ["keep", "drop"] {
            place.write(Path::new(dir).join(OsStr::from_bytes(name)), format!("content {number}"));
        }
    }
    place.run(&["dups", "keep", "drop", "-o", "report"]).code(0);
    place
}

/// Writes the script of a dry run, and executes it with a shell.
fn execute(place: &TestDir, shell: &str, action: &[&str]) {
    let arguments = [&["dups"], action, &["report", "--dry-run", "-o", "script"]].concat();
    place.run(&arguments).code(0);
    let path = format!("{}:{}", place.path("bin").display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(shell);
    let output = command.arg("script").current_dir(place.path("")).env("PATH", path).output();
    let output = output.unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && text.is_empty(), "{shell} {action:?}: {text}");
    assert!(!place.path("pwned").exists(), "{shell} {action:?}");
}

fn shells() -> impl Iterator<Item = &'static str> {
    let is_installed = |shell: &&str| Command::new(shell).args(["-c", ":"]).output().is_ok();
    ["sh", "dash", "bash", "ksh", "mksh", "zsh"].into_iter().filter(is_installed)
}

fn entries(place: &TestDir, dir: impl AsRef<Path>) -> Vec<PathBuf> {
    fs::read_dir(place.path(dir)).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn scripts_of_all_actions_run_in_posix_shells() {
    for shell in shells() {
        let place = place();
        execute(&place, shell, &["remove"]);
        assert_eq!((entries(&place, "keep").len(), entries(&place, "drop").len()), (12, 0));

        let place = self::place();
        execute(&place, shell, &["link"]);
        for name in NAMES.map(OsStr::from_bytes) {
            let [a, b] = ["keep", "drop"].map(|dir| fs::metadata(place.path(dir).join(name)));
            assert_eq!(a.unwrap().ino(), b.unwrap().ino(), "{shell}: {name:?}");
        }

        let place = self::place();
        execute(&place, shell, &["symlink"]);
        for name in NAMES.map(OsStr::from_bytes) {
            let target = fs::read_link(place.path("drop").join(name)).unwrap();
            assert_eq!(target, place.path("keep").join(name), "{shell}");
        }

        let place = self::place();
        execute(&place, shell, &["move", "target"]);
        let moved = place.path("drop").strip_prefix("/").unwrap().to_owned();
        assert_eq!(entries(&place, place.path("target").join(moved)).len(), 12, "{shell}");
        assert_eq!(entries(&place, "drop").len(), 0);
    }
}

#[test]
fn script_of_dedupe_passes_both_files() {
    for shell in shells() {
        let place = place();
        // A substitute for `xfs_io` appends the command, and checks that both files are equal.
        let stub = "#!/bin/sh\nprintf '%s\\n' \"$2\" >> calls\ncmp /dev/fd/3 \"$3\"\n";
        let stub = place.write("bin/xfs_io", stub);
        fs::set_permissions(&stub, PermissionsExt::from_mode(0o755)).unwrap();
        execute(&place, shell, &["dedupe"]);
        let calls = fs::read_to_string(place.path("calls")).unwrap();
        let expected: Vec<_> = (0..NAMES.len())
            .map(|number| format!("dedupe /dev/fd/3 0 0 {}", format!("content {number}").len()))
            .collect();
        let mut calls: Vec<_> = calls.lines().collect();
        calls.sort_unstable();
        let mut expected: Vec<_> = expected.iter().map(String::as_str).collect();
        expected.sort_unstable();
        assert_eq!(calls, expected, "{shell}");
    }
}
