//! Counts the private words (words that the field does not use) and the headless doc comments of
//! each crate: the numbers may only decrease.
//!
//! This file writes the words in pieces, so that it obeys the rules, too.

use std::collections::BTreeMap;

use crate::tree::{Source, assert_none, files, has_word};

/// Words that name neither an action nor its actor.
const PRIVATE: &[&str] = &[
    concat!("te", "ll"),
    concat!("te", "lls"),
    concat!("to", "ld"),
    concat!("te", "lling"),
    concat!("some", "body"),
    concat!("no", "body"),
    concat!("every", "body"),
    concat!("any", "body"),
    concat!("who", "ever"),
    concat!("what", "ever"),
    concat!("an", "ew"),
    concat!("le", "nt"),
    concat!("goes ", "on"),
    concat!("went ", "on"),
    concat!("let ", "go"),
    concat!("comes ", "to"),
    concat!("asked ", "for"),
    concat!("of ", "others"),
    concat!("in ", "vain"),
];

/// Words with which no doc comment may begin, because a doc comment begins with a noun or a verb.
const HEADLESS: &[&str] =
    &["What", "Who", "Whose", "Whether", "How", "Where", "When", "Which", "Why"];

/// Crates that have private words or headless doc comments, and the number of each. The
/// numbers may only decrease.
const LEFT: &[(&str, usize, usize)] = &[("s3-server", 9, 0)];

fn private(file: &Source) -> usize {
    let count = |line: &str| {
        let line = line.replace('_', " ").to_lowercase();
        PRIVATE.iter().filter(|word| has_word(&line, word)).count()
    };
    file.text.lines().map(count).sum()
}

fn headless(file: &Source) -> usize {
    let mut in_doc = false;
    let mut count = 0;
    for line in file.text.lines().map(str::trim_start) {
        let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        if let Some(text) = doc.filter(|_| !in_doc) {
            let first = text.trim_start().split(|c: char| !c.is_alphanumeric()).next();
            count += usize::from(first.is_some_and(|first| HEADLESS.contains(&first)));
        }
        in_doc = doc.is_some();
    }
    count
}

fn complaints(files: &[Source], left: &[(&str, usize, usize)]) -> Vec<String> {
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let row = counts.entry(file.crate_folder().unwrap_or(".")).or_default();
        *row = (row.0 + private(file), row.1 + headless(file));
    }
    let listed = |name: &str| left.iter().find(|row| row.0 == name).map_or((0, 0), |r| (r.1, r.2));
    let differs = counts.into_iter().filter(|(name, found)| *found != listed(name));
    differs
        .map(|(name, found)| {
            let (words, docs) = listed(name);
            let what = if found.0 > words || found.1 > docs { "more than" } else { "fewer than" };
            format!(
                "{name}: {found:?} private words and headless docs, {what} the listed {:?}",
                (words, docs)
            )
        })
        .collect()
}

#[test]
fn crates_use_the_words_of_their_field() {
    assert_none(&complaints(files(), LEFT));
}

#[test]
fn private_words_are_noticed() {
    let found = |text: &str, left| {
        complaints(&[Source::new("crates/a/src/b.rs", text)], &[("a", left, 0)]).len()
    };
    let word = PRIVATE[2];
    assert_eq!(found(&format!("// it is {word}"), 0), 1);
    assert_eq!(found(&format!("fn is_{word}_of() {{}}"), 0), 1);
    assert_eq!(found(&format!("// it is {word}"), 1), 0, "listed");
    assert_eq!(found("// it is reported", 1), 1, "the list must shrink");
    assert_eq!(found("/// Whether it is.\n", 0), 1);
    assert_eq!(found("/// Returns it.\n/// Whether it is.\n", 0), 0, "not at the beginning");
}
