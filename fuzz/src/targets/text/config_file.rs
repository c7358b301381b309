//! Parses a configuration file of a server into its entries.
//!
//! The parser is a module of the program `haul`, which is not a library. It is compiled here, too.

use entries::{Problem, Value, parse};
use toml::de::DeTable;

#[path = "../../../../crates/cli/src/config/entries.rs"]
mod entries;

/// Checks one input.
pub(crate) fn run(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let lines = 1..=text.matches('\n').count() + 1;
    let entries = match parse(text) {
        Ok(entries) => entries,
        Err(Problem { line, reason }) => {
            assert!(lines.contains(&line), "line {line}: {reason}");
            return;
        }
    };
    let table = DeTable::parse(text).expect("a file with entries is TOML").into_inner();
    assert_eq!(entries.len(), table.len());
    assert!(entries.is_sorted_by_key(|entry| entry.line));
    let mut names: Vec<_> = entries.iter().map(|entry| &entry.name).collect();
    names.sort_unstable();
    assert!(names.is_sorted_by(|one, next| one < next), "twice: {names:?}");
    for entry in &entries {
        assert!(lines.contains(&entry.line), "line {}", entry.line);
        // A number is one word on the command line.
        let texts = match &entry.value {
            Value::Flag(_) => &[][..],
            Value::One(text) => std::slice::from_ref(text),
            Value::Many(texts) => texts,
        };
        assert!(texts.iter().map(String::len).sum::<usize>() <= data.len() * 400);
    }
}
