//! Splits the command line of a search, as recorded in a report, into options and paths. No I/O.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The kind of value that an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionValue {
    /// The option takes no value.
    Never,
    /// The value is the rest of the word, or the next word.
    Required,
    /// The value may be omitted; if given, it follows `=`.
    Optional,
}
use OptionValue::{Never, Optional, Required};

/// The options of a search: short name (NUL if it has none), long name and kind of value. They are
/// the options of `fclones group` and some additional ones.
pub const SEARCH_OPTIONS: &[(char, &str, OptionValue)] = &[
    ('v', "verbose", Never),
    ('\0', "stdin", Never),
    ('0', "null", Never),
    ('d', "depth", Required),
    ('.', "hidden", Never),
    ('A', "no-ignore", Never),
    ('L', "follow-links", Never),
    ('S', "symbolic-links", Never),
    ('1', "one-fs", Never),
    ('\0', "base-dir", Required),
    ('s', "min", Required),
    ('\0', "max", Required),
    ('\0', "name", Required),
    ('\0', "path", Required),
    ('\0', "exclude", Required),
    ('i', "ignore-case", Never),
    ('x', "regex", Never),
    ('n', "rf-over", Required),
    ('\0', "rf-under", Required),
    ('\0', "unique", Never),
    ('I', "isolate", Never),
    ('H', "match-links", Never),
    ('\0', "dirs", Never),
    ('\0', "transform", Required),
    ('\0', "in-place", Never),
    ('\0', "no-copy", Never),
    ('o', "output", Required),
    ('f', "format", Required),
    ('\0', "json", Never),
    ('\0', "svg", Required),
    ('\0', "progress", Optional),
    ('\0', "cache", Optional),
    ('\0', "hash-fn", Required),
    ('\0', "skip-content-hash", Never),
    ('\0', "max-prefix-size", Required),
    ('\0', "max-suffix-size", Required),
    ('\0', "disk-kind", Required),
    ('t', "threads", Required),
    ('\0', "spare-cache", Never),
    ('\0', "fill-cache", Never),
];

/// A part of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Argument {
    /// An option: its long name, and its value, which is empty if it has none.
    Option(&'static str, OsString),
    /// A path.
    Path(OsString),
}

/// Splits the words that follow the name of the command; returns `None` if a word is not an option
/// of a search.
pub(super) fn split(words: &[OsString]) -> Option<Vec<Argument>> {
    let mut arguments = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_bytes() {
            b"--" => {
                arguments.extend(words.map(|word| Argument::Path(word.clone())));
                return Some(arguments);
            }
            [b'-', b'-', option @ ..] => arguments.push(long(option, &mut words)?),
            [b'-', first, rest @ ..] => short(*first, rest, &mut words, &mut arguments)?,
            _ => arguments.push(Argument::Path(word.clone())),
        }
    }
    Some(arguments)
}

fn long<'a>(option: &[u8], next: &mut impl Iterator<Item = &'a OsString>) -> Option<Argument> {
    let mut parts = option.splitn(2, |byte| *byte == b'=');
    let (name, value) = (parts.next()?, parts.next());
    let (_, name, takes) = SEARCH_OPTIONS.iter().find(|row| row.1.as_bytes() == name)?;
    let value = match (takes, value) {
        (Never | Optional, None) => OsString::new(),
        (Never, Some(_)) => return None,
        (Required, None) => next.next()?.clone(),
        (Required | Optional, Some(value)) => OsStr::from_bytes(value).to_owned(),
    };
    Some(Argument::Option(name, value))
}

/// Splits a word of short options: `-AI`, `-n2`, `-n=2` or `-In 2`.
fn short<'a>(
    first: u8,
    rest: &[u8],
    next: &mut impl Iterator<Item = &'a OsString>,
    arguments: &mut Vec<Argument>,
) -> Option<()> {
    let (mut letter, mut rest) = (first, rest);
    loop {
        let row = SEARCH_OPTIONS.iter().find(|row| row.0 != '\0' && row.0 == char::from(letter));
        let (_, name, takes) = row?;
        if *takes == Required {
            let value = match rest {
                [] => next.next()?.clone(),
                [b'=', value @ ..] | value => OsString::from_vec(value.to_vec()),
            };
            arguments.push(Argument::Option(name, value));
            return Some(());
        }
        arguments.push(Argument::Option(name, OsString::new()));
        let Some((following, after)) = rest.split_first() else { return Some(()) };
        (letter, rest) = (*following, after);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Option<Vec<(String, String)>> {
        let words: Vec<_> = words.iter().map(OsString::from).collect();
        let text = |word: OsString| word.into_string().unwrap();
        let pair = |argument| match argument {
            Argument::Option(name, value) => (name.to_owned(), text(value)),
            Argument::Path(path) => (String::new(), text(path)),
        };
        split(&words).map(|arguments| arguments.into_iter().map(pair).collect())
    }

    #[test]
    fn options_are_split_as_on_a_command_line() {
        for (words, expected) in [
            (&["-n", "2", "a"][..], &[("rf-over", "2"), ("", "a")][..]),
            (&["-n2"], &[("rf-over", "2")]),
            (&["-n=2"], &[("rf-over", "2")]),
            (&["--rf-over=2", "--rf-over", "3"], &[("rf-over", "2"), ("rf-over", "3")]),
            (&["-IHn2"], &[("isolate", ""), ("match-links", ""), ("rf-over", "2")]),
            (&["-.In", "2"], &[("hidden", ""), ("isolate", ""), ("rf-over", "2")]),
            (&["--cache", "a"], &[("cache", ""), ("", "a")]),
            (&["--cache=a", "-"], &[("cache", "a"), ("", "-")]),
            (&["--isolate", "--", "-n", "--"], &[("isolate", ""), ("", "-n"), ("", "--")]),
        ] {
            let expected: Vec<_> = expected
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect();
            assert_eq!(parsed(words), Some(expected), "{words:?}");
        }
    }

    #[test]
    fn other_options_are_refused() {
        for words in
            [&["-q"][..], &["--help"], &["--isolate=yes"], &["-n"], &["--rf-over"], &["-Iq"]]
        {
            assert_eq!(parsed(words), None, "{words:?}");
        }
    }
}
