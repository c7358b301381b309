//! Checks that only the crate `disk`, and crates with a stated reason, make system calls on files.

use std::collections::BTreeSet;

use crate::exceptions::{Exception, Use, violations};
use crate::imports::paths;
use crate::tree::{Source, assert_none, files};

/// The crate that makes the system calls on files for all other crates.
const OWNER: &str = "disk";

/// The crates besides [`OWNER`] that may use `rustix::fs`, and the reason of each.
const EXCEPTIONS: &[Exception] = &[
    ("bench", "prepares test files and writes everything back between measurements"),
    ("bench-compare", "writes everything back between measurements of other logs"),
    ("bulk-read", "lists trees of any names below directory descriptors, which `Disk` does not"),
    ("cli", "checks that a server can write to the directory of its key file"),
    ("disk-sim", "backs the simulated block device by a file, and mounts it"),
    ("duplicates", "links, renames and removes files below directory descriptors, under leases"),
    ("file-server", "opens files below its root for sendfile, and compares their status"),
    ("http-engine", "sends windows of open files with sendfile"),
    ("line-log", "reads the modification time of a log, which the trait `File` does not have"),
    ("measure", "reads the free space and the open flags of its scratch file"),
    ("page-cache", "advises the kernel about the cached pages of any file"),
    ("reactor", "checks that a stale unix socket is a socket before it is removed"),
    ("s3-server", "reports the free space of the store as a metric"),
    ("testing", "mounts images of file systems for tests"),
    ("transfer", "opens trees below directory descriptors, and sets modification times"),
];

fn uses(files: &[Source]) -> BTreeSet<Use> {
    let used = |file: &Source| {
        let folder = file.crate_folder().filter(|folder| *folder != OWNER)?;
        let calls =
            paths(file).iter().any(|path| path.starts_with(&["rustix", "fs"].map(Into::into)));
        calls.then(|| Use { folder: folder.to_owned(), place: file.path.clone() })
    };
    files.iter().filter(|file| file.is_production()).filter_map(used).collect()
}

const RULE: &str = "rustix::fs is for haul-disk: use or extend it";

#[test]
fn only_the_owner_of_files_calls_the_kernel_about_them() {
    assert_none(&violations(RULE, &uses(files()), EXCEPTIONS));
}

#[test]
fn a_call_about_files_outside_of_their_owner_is_reported() {
    let count = |path: &str, text: &str| uses(&[Source::new(path, text)]).len();
    for text in [
        "use rustix::fs::fstat;\n",
        "use rustix::{fd::AsFd, fs::{self, Mode}};\n",
        "use rustix::fs::{\n    Mode, OFlags,\n};\n",
        "fn f() {\n    rustix::fs::sync();\n}\n",
    ] {
        assert_eq!(count("crates/units/src/lib.rs", text), 1, "{text}");
    }
    assert_eq!(count("crates/disk/src/os/mod.rs", "use rustix::fs::fstat;\n"), 0, "the owner");
    assert_eq!(count("crates/units/src/lib.rs", "use rustix::io::Errno;\n"), 0);
    assert_eq!(count("crates/units/src/lib.rs", "// rustix::fs::sync();\n"), 0, "a comment");
    assert_eq!(count("crates/units/tests/all/main.rs", "use rustix::fs::fstat;\n"), 0, "a test");
}
