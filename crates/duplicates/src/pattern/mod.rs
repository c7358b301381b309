//! Patterns for names and paths: globs as fclones has them, or regular expressions. Pure.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use regex::bytes::{Regex, RegexBuilder};

use crate::error::{Error, Result};

/// How patterns are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Syntax {
    /// Regular expressions instead of globs.
    pub regex: bool,
    /// Upper and lower case are the same.
    pub ignore_case: bool,
}

/// One pattern. It matches all of a name or path, never a part.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

impl Pattern {
    /// A pattern for the last part of a path.
    ///
    /// # Errors
    /// When it cannot be read as `syntax` has it.
    pub fn name(text: &str, syntax: Syntax) -> Result<Self> {
        Self::build(text, "", syntax)
    }

    /// A pattern for whole paths; one that is relative begins at `base`.
    ///
    /// # Errors
    /// When it cannot be read as `syntax` has it.
    pub fn path(text: &str, base: &Path, syntax: Syntax) -> Result<Self> {
        let text = if syntax.regex { text.strip_prefix('^').unwrap_or(text) } else { text };
        let anywhere = if syntax.regex { ".*" } else { "**" };
        if text.starts_with('/') || text.starts_with(anywhere) {
            return Self::build(text, "", syntax);
        }
        let base = base.as_os_str().as_bytes();
        let mut before: String = base.utf8_chunks().map(literal).collect();
        if !base.ends_with(b"/") {
            before.push('/');
        }
        Self::build(text.strip_prefix("./").unwrap_or(text), &before, syntax)
    }

    fn build(text: &str, before: &str, syntax: Syntax) -> Result<Self> {
        let expression = if syntax.regex { text.to_owned() } else { glob_to_regex(text) };
        RegexBuilder::new(&format!("^{before}(?:{expression})$"))
            .case_insensitive(syntax.ignore_case)
            .dot_matches_new_line(true)
            .build()
            .map(Self)
            .map_err(|source| Error::Pattern { pattern: text.to_owned(), source })
    }

    /// Whether all of `bytes` is as the pattern says.
    #[must_use]
    pub fn matches(&self, bytes: &[u8]) -> bool {
        self.0.is_match(bytes)
    }
}

/// A piece of a path as an expression for itself alone.
fn literal(chunk: std::str::Utf8Chunk<'_>) -> String {
    let invalid = chunk.invalid().iter().map(|byte| format!("(?-u:\\x{byte:02x})"));
    regex::escape(chunk.valid()) + &invalid.collect::<String>()
}

/// Any byte, and any character (or byte that is none) but the one that parts a path.
const ANY: &str = "(?s-u:.)*";
const IN_PART: &str = "(?:[^/]|(?-u:[^/]))";

/// `*` and `?` stay within a part of a path, `**` does not; `[a-z]`, `[!a]`, `{a,b}`, and the
/// extended `?(a|b)`, `*(…)`, `+(…)`, `@(…)`; a backslash takes the meaning from what follows.
fn glob_to_regex(glob: &str) -> String {
    let (mut regex, mut rest) = (String::new(), glob);
    // What closes the brackets that are open, innermost last, and what it means.
    let mut open: Vec<(char, String)> = Vec::new();
    while let Some(character) = rest.chars().next() {
        let (part, after) = rest.split_at(character.len_utf8());
        rest = after;
        match character {
            '?' | '*' | '+' | '@' if after.starts_with('(') => {
                open.push((')', format!("){}", part.trim_matches('@'))));
                regex.push_str("(?:");
                rest = &after[1..];
            }
            '*' if after.starts_with('*') => {
                rest = after.trim_start_matches('*');
                let is_part = regex.is_empty() || regex.ends_with('/');
                match rest.strip_prefix('/').filter(|_| is_part) {
                    // Also nothing: "**/a" matches "a".
                    Some(below) => {
                        regex.push_str(&format!("(?:{ANY}/)?"));
                        rest = below;
                    }
                    None => regex.push_str(ANY),
                }
            }
            '*' => regex.push_str(&format!("{IN_PART}*")),
            '?' => regex.push_str(IN_PART),
            '[' => rest = class(&mut regex, after),
            '{' => {
                open.push(('}', ")".to_owned()));
                regex.push_str("(?:");
            }
            ',' if open.last().is_some_and(|(close, _)| *close == '}') => regex.push('|'),
            '|' if open.last().is_some_and(|(close, _)| *close == ')') => regex.push('|'),
            _ if open.last().is_some_and(|(close, _)| *close == character) => {
                regex.extend(open.pop().map(|(_, meaning)| meaning));
            }
            '\\' if !after.is_empty() => {
                let escaped = after.chars().next().map_or(0, char::len_utf8);
                regex.push_str(&regex::escape(&after[..escaped]));
                rest = &after[escaped..];
            }
            _ => regex.push_str(&regex::escape(part)),
        }
    }
    regex
}

/// Adds the class that begins here, and gives what comes after it. A bracket that is never closed
/// is a bracket.
fn class<'a>(regex: &mut String, text: &'a str) -> &'a str {
    let is_negated = text.starts_with(['!', '^']);
    let inside = &text[usize::from(is_negated)..];
    // A closing bracket that comes first is one of the class.
    let from = usize::from(inside.starts_with(']'));
    let Some(end) = inside[from..].find(']').map(|end| from + end) else {
        regex.push_str("\\[");
        return text;
    };
    regex.push_str(if is_negated { "[^/" } else { "[" });
    for character in inside[..end].chars() {
        match character {
            '-' => regex.push('-'),
            _ => regex.push_str(&regex::escape(character.encode_utf8(&mut [0; 4]))),
        }
    }
    regex.push(']');
    &inside[end + 1..]
}

#[cfg(test)]
mod tests {
    use super::*;

    const GLOB: Syntax = Syntax { regex: false, ignore_case: false };

    #[test]
    fn globs_mean_what_they_mean_to_fclones() {
        for (glob, yes, no) in [
            ("*.jpg", &["a.jpg", ".jpg"][..], &["a.jpeg", "a/b.jpg", "a.jpg.txt"][..]),
            ("?.txt", &["a.txt", "ä.txt"], &["ab.txt", "/.txt"]),
            ("a**b", &["ab", "a/x/b"], &["ac"]),
            ("**/a", &["a", "x/a", "x/y/a"], &["xa", "a/x"]),
            ("a/**", &["a/", "a/b/c"], &["a", "ab"]),
            ("*.{jpg,png}", &["a.jpg", "b.png"], &["c.gif", "a.{jpg,png}"]),
            ("*.+(jpg|png)", &["a.jpg", "b.pngjpg"], &["c.", "c.gif"]),
            ("a@(b|c)?(d)", &["ab", "acd"], &["a", "abdd"]),
            ("[a-c]x[!0-9]", &["axz", "cx_"], &["dxz", "ax1"]),
            ("[]x]", &["]", "x"], &["a"]),
            ("a[b", &["a[b"], &["ab"]),
            ("a\\*b", &["a*b"], &["axb"]),
            ("a.b+c^$|(d)", &["a.b+c^$|(d)"], &["aXb+c"]),
        ] {
            let pattern = Pattern::name(glob, GLOB).unwrap();
            for name in yes {
                assert!(pattern.matches(name.as_bytes()), "{glob} {name}");
            }
            for name in no {
                assert!(!pattern.matches(name.as_bytes()), "{glob} {name}");
            }
        }
        let any = Pattern::name("a*", GLOB).unwrap();
        assert!(any.matches(b"a\xff\n") && !any.matches(b"\xff"));
    }

    #[test]
    fn relative_paths_begin_at_the_base() {
        let base = Path::new("/the (base)");
        for (glob, path, is_match) in [
            ("a/*", "/the (base)/a/b", true),
            ("./a/*", "/the (base)/a/b", true),
            ("a/*", "/a/b", false),
            ("/a/*", "/a/b", true),
            ("**/b", "/x/y/b", true),
        ] {
            let pattern = Pattern::path(glob, base, GLOB).unwrap();
            assert_eq!(pattern.matches(path.as_bytes()), is_match, "{glob} {path}");
        }
    }

    #[test]
    fn expressions_match_the_whole_and_mistakes_are_told() {
        let syntax = Syntax { regex: true, ignore_case: true };
        let pattern = Pattern::name("^a.*z$", syntax).unwrap();
        assert!(pattern.matches(b"Abz") && !pattern.matches(b"abzc"));
        let either = Pattern::name("a|bc", syntax).unwrap();
        assert!(either.matches(b"bc") && !either.matches(b"ac"));
        let below = Pattern::path("x/.*", Path::new("/base"), syntax).unwrap();
        assert!(below.matches(b"/base/x/y") && !below.matches(b"/x/y"));
        let error = Pattern::name("(", syntax).unwrap_err().to_string();
        assert!(error.contains('('), "{error}");
    }
}
