//! Checks the length of source files.

use std::collections::BTreeMap;

use crate::tree::{Source, assert_none, files};

/// The maximum number of lines of a file, without its tests.
const LINES_MAX: usize = 400;

fn violations(files: &[Source]) -> Vec<String> {
    let lines = |file: &Source| file.production().lines().count();
    let long = |file: &&Source| file.is_rust() && lines(file) > LINES_MAX;
    let message = |file: &Source| {
        format!("{}: {} lines exceed the maximum of {LINES_MAX}: split it", file.path, lines(file))
    };
    files.iter().filter(long).map(message).collect()
}

/// Formats a table with the numbers of files, lines, and lines of tests of each crate.
fn table(files: &[Source]) -> String {
    let mut crates: BTreeMap<&str, (usize, usize, usize)> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let row = crates.entry(file.crate_folder().unwrap_or(".")).or_default();
        let all = file.text.lines().count();
        let production = if file.is_production() { file.production().lines().count() } else { 0 };
        *row = (row.0 + 1, row.1 + production, row.2 + all - production);
    }
    let mut table = format!("{:12} {:>5} {:>6} {:>6}\n", "crate", "files", "lines", "tests");
    for (name, (files, production, tests)) in crates {
        table += &format!("{name:12} {files:>5} {production:>6} {tests:>6}\n");
    }
    table
}

#[test]
fn no_file_exceeds_the_maximum_length() {
    println!("{}", table(files()));
    assert_none(&violations(files()));
}

#[test]
fn long_file_is_reported_and_tests_do_not_count() {
    let long = "\n".repeat(LINES_MAX + 1);
    assert_eq!(violations(&[Source::new("a.rs", &long)]).len(), 1);
    let tests = format!("fn a() {{}}\n\n#[cfg(test)]\nmod tests {{{long}}}\n");
    assert_none(&violations(&[Source::new("a.rs", &tests), Source::new("a.md", &long)]));
}
