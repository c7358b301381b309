//! Pure modules do no I/O; libraries leave files, environment and terminal to others.

use crate::tree::{Source, assert_none, files, has_word};

/// Modules of this name are functions of their arguments.
const PURE: &[&str] =
    &["format.rs", "names.rs", "plan.rs", "sysfs.rs", "mounts.rs", "units.rs", "request.rs"];

/// What would be I/O: paths, and words of `haul_disk` that stand for a disk or a file.
const IO: &[&str] = &[
    "std::fs",
    "std::io",
    "std::net",
    "std::process",
    "std::env",
    "rustix",
    "libc",
    "tokio",
    "File",
    "Disk",
    "OsDisk",
];

/// Libraries that reach storage through `haul_disk` alone and never speak.
const QUIET: &[&str] = &["append-log", "bulk-read", "line-log", "file-store"];

const LOUD: &[&str] =
    &["std::fs", "std::env", "println!", "print!", "eprintln!", "eprint!", "dbg!"];

fn complaints(files: &[Source]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| file.is_production()) {
        let is_pure = PURE.contains(&file.name());
        let is_quiet = file.crate_folder().is_some_and(|folder| QUIET.contains(&folder));
        for (number, line) in file.code() {
            let banned = |is: bool, words: &'static [&str]| {
                words.iter().find(|word| is && has_word(&line, word))
            };
            if let Some(word) = banned(is_pure, IO) {
                complaints.push(format!("{}:{number}: {word} in a pure module", file.path));
            } else if let Some(word) = banned(is_quiet, LOUD) {
                complaints.push(format!("{}:{number}: {word} in a quiet library", file.path));
            }
        }
    }
    complaints
}

#[test]
fn pure_modules_do_no_io_and_libraries_are_quiet() {
    assert_none(&complaints(files()));
}

#[test]
fn io_in_the_wrong_place_is_noticed() {
    let found = |path: &str, text: &str| complaints(&[Source::new(path, text)]).len();
    assert_eq!(found("crates/disk/src/plan.rs", "use std::fs::read;\nuse std::fmt;\n"), 1);
    assert_eq!(found("crates/append-log/src/format.rs", "use haul_disk::{File, Op};\n"), 1);
    assert_eq!(found("crates/file-store/src/get.rs", "    println!(\"hello\");\n"), 1);
    assert_eq!(found("crates/append-log/src/log.rs", "let home = std::env::var(HOME);\n"), 1);

    assert_eq!(found("crates/disk/src/file.rs", "use std::fs::read;\n"), 0, "not a pure module");
    assert_eq!(found("crates/disk/src/plan.rs", "// not std::fs\n"), 0, "a comment");
    let in_tests = "\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n";
    assert_eq!(found("crates/file-store/src/plan.rs", in_tests), 0, "tests may");
    assert_eq!(found("crates/file-store/tests/all/main.rs", "use std::fs;\n"), 0, "tests may");
}
