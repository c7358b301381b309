//! Matches names against globs and regular expressions.
//!
//! The first byte is the syntax; then follow the pattern, a newline, and a name.

use std::path::Path;

use crate::glob::matches_simply;
use haul_duplicates::{Pattern, Syntax};

/// Returns a glob that matches only this name.
fn escaped(name: &str) -> String {
    name.chars().flat_map(|character| ['\\', character]).collect()
}

/// Checks one input.
pub(crate) fn run(data: &[u8]) {
    let Some((flags, rest)) = data.split_first() else { return };
    let syntax = Syntax { regex: flags & 1 != 0, ignore_case: flags & 2 != 0 };
    let line_end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    let (text, name) = (&rest[..line_end], rest.get(line_end + 1..).unwrap_or_default());
    if let Ok(name) = str::from_utf8(name) {
        let pattern = Pattern::name(&escaped(name), Syntax::default()).unwrap();
        assert!(pattern.matches(name.as_bytes()), "{name:?} does not match itself");
        assert!(!pattern.matches(&[name.as_bytes(), b"x"].concat()));
    }
    let Ok(text) = str::from_utf8(text) else { return };
    if let Ok(pattern) = Pattern::name(text, syntax) {
        let is_match = pattern.matches(name);
        if syntax == Syntax::default()
            && let Some(expected) = matches_simply(text.as_bytes(), name)
        {
            assert_eq!(is_match, expected, "{text:?} and {name:?}");
        }
    }
    if let Ok(pattern) = Pattern::path(text, Path::new("/base"), syntax) {
        // A search does not enter a directory if all its entries are excluded.
        let dir = b"/base/dir";
        if pattern.matches_all_in(dir) && !name.contains(&b'/') && !name.is_empty() {
            assert!(pattern.matches(&[dir, &b"/"[..], name].concat()), "{text:?} and {name:?}");
        }
    }
}
