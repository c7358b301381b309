//! Checks that pure modules perform no I/O.

use crate::tree::{Source, assert_none, files, has_word};

/// Names of files that contain only pure functions. All files in a folder `plan` are pure, too.
const PURE: &[&str] = &[
    "format.rs",
    "names.rs",
    "plan.rs",
    "sysfs.rs",
    "mounts.rs",
    "units.rs",
    "request.rs",
    "rotation_policy.rs",
    "segment_header.rs",
    "record_header.rs",
];

/// Words that indicate I/O: module paths, and types of `haul_disk` for disks and files.
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

fn violations(files: &[Source]) -> Vec<String> {
    let mut violations = Vec::new();
    let is_pure = |file: &&Source| {
        let is_plan = PURE.contains(&file.name()) || file.path.contains("/plan/");
        is_plan && file.is_production()
    };
    for file in files.iter().filter(is_pure) {
        for (number, line) in file.code() {
            if let Some(word) = IO.iter().find(|word| has_word(&line, word)) {
                violations.push(format!("{}:{number}: {word} in a pure module", file.path));
            }
        }
    }
    violations
}

#[test]
fn pure_modules_do_no_io() {
    assert_none(&violations(files()));
}

#[test]
fn io_in_a_pure_module_is_reported() {
    let count = |path: &str, text: &str| violations(&[Source::new(path, text)]).len();
    assert_eq!(count("crates/disk/src/plan.rs", "use std::fs::read;\nuse std::fmt;\n"), 1);
    assert_eq!(count("crates/disk/src/plan/costs.rs", "use std::fs::read;\n"), 1);
    assert_eq!(count("crates/append-log/src/format.rs", "use haul_disk::{File, Op};\n"), 1);

    assert_eq!(count("crates/disk/src/file.rs", "use std::fs::read;\n"), 0, "not a pure module");
    assert_eq!(count("crates/disk/src/plan.rs", "// not std::fs\n"), 0, "a comment");
    let in_tests = "\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n";
    assert_eq!(count("crates/file-store/src/plan.rs", in_tests), 0, "tests are exempt");
    assert_eq!(
        count("crates/file-store/tests/all/main.rs", "use std::fs;\n"),
        0,
        "tests are exempt"
    );
}
