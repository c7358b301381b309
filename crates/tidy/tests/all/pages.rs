//! Checks that the lines of Markdown pages are not too wide, and that the files they name exist.

use crate::tree::{Source, assert_none, files};

/// The widest line outside tables, code and links.
const COLUMNS_MAX: usize = 100;

fn is_page(file: &&Source) -> bool {
    file.path.ends_with(".md")
}

/// Returns the lines of a page outside code blocks, numbered from 1.
fn prose(file: &Source) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    (1..).zip(file.text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

fn wide(files: &[Source]) -> Vec<String> {
    let mut complaints = Vec::new();
    // A line break between two Chinese characters would be shown as a space.
    let is_chinese = |file: &&Source| file.path.starts_with("docs/zh/");
    for file in files.iter().filter(is_page).filter(|file| !is_chinese(file)) {
        for (number, line) in prose(file) {
            let is_free = line.starts_with('|') || line.contains("](") || line.contains("://");
            let columns = line.chars().count();
            if columns > COLUMNS_MAX && !is_free {
                complaints.push(format!("{}:{number}: {columns} columns", file.path));
            }
        }
    }
    complaints
}

/// Returns the names in backticks that end with `.rs`, as the source files of this tree do.
fn names(line: &str) -> impl Iterator<Item = &str> {
    let quoted = line.split('`').skip(1).step_by(2);
    quoted.filter(|name| {
        let is_plain = name.chars().all(|c| c.is_alphanumeric() || "/_-.".contains(c));
        is_plain && name.ends_with(".rs")
    })
}

fn missing(files: &[Source]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files.iter().filter(is_page) {
        for (number, line) in prose(file) {
            for name in names(line) {
                let ends = |other: &Source| {
                    other.path == name || other.path.ends_with(&format!("/{name}"))
                };
                if !files.iter().any(ends) {
                    complaints.push(format!("{}:{number}: there is no {name}", file.path));
                }
            }
        }
    }
    complaints
}

#[test]
fn pages_are_narrow_and_name_files_that_exist() {
    let mut complaints = wide(files());
    complaints.extend(missing(files()));
    assert_none(&complaints);
}

#[test]
fn wide_lines_and_missing_files_are_noticed() {
    let long = "word ".repeat(30);
    let page = |text: &str| [Source::new("docs/a.md", text), Source::new("crates/a/src/b.rs", "")];
    let wide = |text: &str| wide(&page(text)).len();
    assert_eq!(
        [wide(&long), wide(&format!("| {long}")), wide(&format!("```\n{long}\n```"))],
        [1, 0, 0]
    );
    let missing = |text: &str| missing(&page(text)).len();
    assert_eq!([missing("`src/b.rs`"), missing("`c.rs`"), missing("`x.md`")], [0, 1, 0]);
}
