//! Checks that banned words do not occur in the tree, or occur only in one meaning.
//!
//! This file splits the words with `concat!`, so that it obeys the rules, too.

use crate::tree::{Source, assert_none, files, has_word};

/// Markers of deferred work, which belongs in the issue tracker.
const MARKS: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// Paths and package hosts specific to one machine.
const LOCAL: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("crates", ".io"),
    concat!("py", "pi.org"),
    concat!("npm", "js.org"),
    concat!("proxy.golang", ".org"),
    concat!("deb.debian", ".org"),
];

/// A word that may mean "passed to the kernel" or "durable", so libraries use it for neither.
const AMBIGUOUS: &str = concat!("flu", "sh");

/// The libraries in which the ambiguous word is banned.
const LIBRARIES: &[&str] = &[
    "disk",
    "append-log",
    "bulk-read",
    "line-log",
    "file-store",
    "sorted-write",
    "s3-server",
    "bench",
];

/// Phrases that may contain the ambiguous word: (folder of the crate, phrase). An empty folder
/// stands for all crates. The kernel counts requests of this name, and the writer traits
/// and the builder of hyper have methods of this name.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("", concat!(".flu", "sh()")),
    ("", concat!("fn flu", "sh(&mut self)")),
    ("s3-server", concat!("poll_flu", "sh(")),
    ("bench", concat!("poll_flu", "sh(")),
    ("bench", concat!("pipeline_flu", "sh(true)")),
    ("disk", concat!("flu", "sh request")),
    ("disk", concat!("flu", "sh_request")),
];

fn is_ambiguous(file: &Source, line: &str) -> bool {
    let Some(folder) = file.crate_folder().filter(|folder| LIBRARIES.contains(folder)) else {
        return false;
    };
    let mut line = line.to_lowercase();
    for (owner, phrase) in EXCEPTIONS {
        if owner.is_empty() || *owner == folder {
            line = line.replace(phrase, "");
        }
    }
    // Devices have a request of this name for their write cache, so lines about it are exempt.
    line.contains(AMBIGUOUS) && !line.contains("write cache")
}

fn violations(files: &[Source]) -> Vec<String> {
    let mut violations = Vec::new();
    // Cargo writes the host of its package registry, which is in `LOCAL`, into lock files.
    for file in files.iter().filter(|file| file.name() != "Cargo.lock") {
        for (number, line) in (1..).zip(file.text.lines()) {
            let mut report = |reason: String| {
                violations.push(format!("{}:{number}: {reason}: {}", file.path, line.trim()));
            };
            if let Some(mark) = MARKS.iter().find(|mark| has_word(line, mark)) {
                report(format!("move {mark} to the issue tracker"));
            }
            if let Some(name) = LOCAL.iter().find(|name| line.contains(**name)) {
                report(format!("{name} is specific to one machine"));
            }
            if is_ambiguous(file, line) {
                report(format!("write, sync or publish instead of {AMBIGUOUS}"));
            }
        }
    }
    violations
}

#[test]
fn tree_has_no_banned_word() {
    assert_none(&violations(files()));
}

#[test]
fn banned_word_is_reported() {
    let count = |path: &str, text: String| violations(&[Source::new(path, &text)]).len();
    for word in MARKS.iter().chain(LOCAL) {
        assert_eq!(count("docs/a.md", format!("a {word} here")), 1, "{word}");
    }
    assert_eq!(count("docs/a.md", format!("mktemp {}{}", MARKS[2], MARKS[2])), 0, "within a word");

    let in_library = |text: String| count("crates/disk/src/file.rs", text);
    assert_eq!(in_library(format!("fn {AMBIGUOUS}_all() {{}}")), 1);
    assert_eq!(in_library(format!("// {}es the file", AMBIGUOUS.to_uppercase())), 1);
    assert_eq!(in_library(format!("out.{AMBIGUOUS}()?; // a {AMBIGUOUS} request")), 0);
    assert_eq!(count("crates/append-log/FORMAT.md", format!("a {AMBIGUOUS} request")), 1);
    assert_eq!(count("crates/cli/src/main.rs", AMBIGUOUS.to_owned()), 0, "not a library");
}
