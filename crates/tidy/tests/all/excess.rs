//! Compares what exceeds a rule with `excess.txt`, a list that only shrinks: a test fails if a place
//! exceeds the rule and its entry, and if the entry is larger than the excess.
//!
//! `HAUL_LOWER_EXCESS=1 cargo test -p haul-tidy excess::` lowers the entries; it never raises one.

use crate::items::{impl_files, lines, prefixed_names, tuple_parameters};
use crate::modules::{Program, programs};
use crate::tree::{Source, assert_none, files, root};

const PATH: &str = "crates/tidy/excess.txt";

/// A rule that limits a number for each place, such as a file or a crate.
struct Rule {
    name: &'static str,
    max: usize,
    find: fn(&[Source]) -> Vec<Found>,
}

/// What a rule counts at a place.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) place: String,
    pub(crate) number: usize,
    /// What is counted, for the message; may be empty.
    pub(crate) detail: String,
}

impl Found {
    pub(crate) fn new(place: &str, items: &[String]) -> Self {
        Self { place: place.to_owned(), number: items.len(), detail: items.join(", ") }
    }
}

const RULES: &[Rule] = &[
    // A file holds one concept.
    Rule { name: "lines", max: 600, find: lines },
    // State has an owner: who changes it can be read in a few files.
    Rule { name: "impl-files", max: 6, find: impl_files },
    // Top-level modules of a crate that use each other are one module in two folders.
    Rule { name: "mutual-modules", max: 0, find: mutual_modules },
    Rule { name: "import-cycles", max: 0, find: import_cycles },
    // A parameter that is a tuple lacks a named type.
    Rule { name: "tuple-parameters", max: 0, find: tuple_parameters },
    // Noun before noun: `peer_state`, `from_headers`.
    Rule { name: "of-names", max: 0, find: prefixed_names },
];

fn mutual_modules(files: &[Source]) -> Vec<Found> {
    let found = |program: &Program<'_>| Found::new(&program.root, &program.mutual_pairs());
    programs(files).iter().map(found).collect()
}

fn import_cycles(files: &[Source]) -> Vec<Found> {
    let found = |program: &Program<'_>| Found::new(&program.root, &program.files_on_cycles());
    programs(files).iter().map(found).collect()
}

/// Returns the violations, and the list with lowered entries.
fn compare(rules: &[Rule], files: &[Source], list: &str) -> (Vec<String>, String) {
    let (mut violations, mut lowered) = (Vec::new(), Vec::new());
    let mut entries: Vec<_> = list.lines().filter(|line| !line.starts_with('#')).collect();
    for rule in rules {
        for Found { place, number, detail } in (rule.find)(files) {
            let name = format!("{} {place} ", rule.name);
            let entry = entries.iter().position(|line| line.starts_with(&name));
            let listed = entry.and_then(|at| entries.remove(at)[name.len()..].parse().ok());
            let allowed = listed.unwrap_or(rule.max);
            if number > allowed {
                violations.push(format!("{name}{number}, at most {allowed}: {detail}"));
            } else if listed.is_some() && number < allowed {
                violations.push(format!("{PATH}: lower to {name}{number}"));
            }
            if listed.is_some() && number > rule.max {
                lowered.push(format!("{name}{}\n", number.min(allowed)));
            }
        }
    }
    violations.extend(entries.iter().map(|line| format!("{PATH}: remove {line}")));
    (violations, lowered.concat())
}

#[test]
fn excess_only_shrinks() {
    let path = root().join(PATH);
    let list = std::fs::read_to_string(&path).unwrap();
    let (mut violations, lowered) = compare(RULES, files(), &list);
    if std::env::var_os("HAUL_LOWER_EXCESS").is_some() {
        let head = list.lines().take_while(|line| line.starts_with('#'));
        let head: String = head.flat_map(|line| [line, "\n"]).collect();
        std::fs::write(path, head + &lowered).unwrap();
        violations.retain(|it| !it.starts_with(PATH));
    }
    assert_none(&violations);
}

#[test]
fn new_excess_and_loose_entries_are_reported() {
    let files = [Source::new("crates/a/src/of_b.rs", "fn of_c(of_d: u8) {}\n")];
    let rule = || Rule { name: "of-names", max: 0, find: prefixed_names };
    for (list, violations, lowered) in [
        ("of-names a 2\n", 0, "of-names a 2\n"),
        ("of-names a 1\n", 1, "of-names a 1\n"),
        ("of-names a 3\n", 1, "of-names a 2\n"),
        ("", 1, ""),
        ("# a\nof-names a 2\nof-names b 1\n", 1, "of-names a 2\n"),
    ] {
        let found = compare(&[rule()], &files, list);
        assert_eq!((found.0.len(), &*found.1), (violations, lowered), "{list}");
    }
}
