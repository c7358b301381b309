//! Words that must not stand in the tree, or mean one thing only.
//!
//! The words themselves are written in pieces here, so that this file obeys its own rules.

use crate::tree::{Source, assert_none, files, has_word};

/// Marks of work that was put off: such work belongs to the list of issues.
const MARKS: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// Paths of one machine, and hosts that one machine's package tools ask.
const PLACES: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("crates", ".io"),
    concat!("py", "pi.org"),
    concat!("npm", "js.org"),
    concat!("proxy.golang", ".org"),
    concat!("deb.debian", ".org"),
];

/// Says neither "handed to the kernel" nor "on the medium", so it is used for neither.
const VAGUE: &str = concat!("flu", "sh");

/// The libraries that watch their words.
const LIBRARIES: &[&str] =
    &["disk", "append-log", "bulk-read", "line-log", "file-store", "s3-server", "bench"];

/// Where the vague word is the name somebody else gave: (folder of the crate, how it stands).
/// The kernel counts requests of that name, and `std::io::Write` has a method.
const NAMED_BY_OTHERS: &[(&str, &str)] = &[
    ("", concat!(".flu", "sh()")),
    ("", concat!("fn flu", "sh(&mut self)")),
    ("disk", concat!("flu", "sh request")),
    ("disk", concat!("flu", "sh_request")),
];

fn is_vague(file: &Source, line: &str) -> bool {
    let Some(folder) = file.crate_folder().filter(|folder| LIBRARIES.contains(folder)) else {
        return false;
    };
    let mut line = line.to_lowercase();
    for (whose, phrase) in NAMED_BY_OTHERS {
        if whose.is_empty() || *whose == folder {
            line = line.replace(phrase, "");
        }
    }
    line.contains(VAGUE)
}

fn complaints(files: &[Source]) -> Vec<String> {
    let mut complaints = Vec::new();
    // Lock files are cargo's, and name its registry.
    for file in files.iter().filter(|file| file.name() != "Cargo.lock") {
        for (number, line) in (1..).zip(file.text.lines()) {
            let mut complain = |why: String| {
                complaints.push(format!("{}:{number}: {why}: {}", file.path, line.trim()));
            };
            if let Some(mark) = MARKS.iter().find(|mark| has_word(line, mark)) {
                complain(format!("{mark} is for the list of issues"));
            }
            if let Some(place) = PLACES.iter().find(|place| line.contains(**place)) {
                complain(format!("{place} is not everybody's"));
            }
            if is_vague(file, line) {
                complain(format!("say write, sync or publish instead of {VAGUE}"));
            }
        }
    }
    complaints
}

#[test]
fn no_unwanted_word_stands_in_the_tree() {
    assert_none(&complaints(files()));
}

#[test]
fn an_unwanted_word_is_noticed() {
    let found = |path: &str, text: String| complaints(&[Source::new(path, &text)]).len();
    for word in MARKS.iter().chain(PLACES) {
        assert_eq!(found("docs/a.md", format!("a {word} here")), 1, "{word}");
    }
    assert_eq!(found("docs/a.md", format!("mktemp {}{}", MARKS[2], MARKS[2])), 0, "within a word");

    let in_library = |text: String| found("crates/disk/src/file.rs", text);
    assert_eq!(in_library(format!("fn {VAGUE}_all() {{}}")), 1);
    assert_eq!(in_library(format!("// {}es the file", VAGUE.to_uppercase())), 1);
    assert_eq!(in_library(format!("out.{VAGUE}()?; // a {VAGUE} request")), 0);
    assert_eq!(found("crates/append-log/FORMAT.md", format!("a {VAGUE} request")), 1);
    assert_eq!(found("crates/cli/src/main.rs", VAGUE.to_owned()), 0, "not a library");
}
