//! Parses a configuration file into its entries. The module does no I/O.

use std::fmt;

use toml::de::{DeTable, DeValue};

/// A line of the file that sets an option.
#[derive(Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) name: String,
    /// The number of the line, from 1.
    pub(super) line: usize,
    pub(super) value: Value,
}

/// The value of an option, in the form of the command line.
#[derive(Debug, PartialEq)]
pub(super) enum Value {
    Flag(bool),
    One(String),
    Many(Vec<String>),
}

/// An error of the file.
#[derive(Debug, PartialEq)]
pub(super) struct Problem {
    pub(super) line: usize,
    pub(super) reason: String,
}

impl std::error::Error for Problem {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

/// Returns the entries in the order of their lines.
pub(super) fn parse(text: &str) -> Result<Vec<Entry>, Problem> {
    let line = |offset: usize| text.get(..offset).unwrap_or(text).matches('\n').count() + 1;
    let table = DeTable::parse(text).map_err(|error| Problem {
        line: line(error.span().map_or(0, |span| span.start)),
        reason: error.message().to_owned(),
    })?;
    let mut entries = Vec::new();
    for (name, value) in table.into_inner() {
        let line = line(name.span().start);
        let name = name.into_inner().into_owned();
        let value = match value.into_inner() {
            DeValue::Boolean(flag) => Value::Flag(flag),
            DeValue::Array(items) => {
                let texts: Option<Vec<_>> =
                    items.into_iter().map(|item| scalar(&item.into_inner())).collect();
                let problem = || Problem {
                    line,
                    reason: format!("{name}: expected an array of strings or numbers"),
                };
                Value::Many(texts.ok_or_else(problem)?)
            }
            value => match scalar(&value) {
                Some(text) => Value::One(text),
                None => return Err(Problem { line, reason: not_an_option(&name, &value) }),
            },
        };
        entries.push(Entry { name, line, value });
    }
    entries.sort_by_key(|entry| entry.line);
    Ok(entries)
}

/// Returns the text of a string or number; `None` for other values.
fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Float(number) => Some(number.to_string()),
        _ => None,
    }
}

fn not_an_option(name: &str, value: &DeValue<'_>) -> String {
    match value {
        DeValue::Table(_) => format!("{name} is a table: write options without a table"),
        _ => format!("{name}: expected a string, a number, true, false or an array"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_names_values_and_lines() {
        let text = "# a comment\nb = \"64MiB\"\n\na = true # more\nn = 4096\nf = 1.5\n\
                    m = [\n  \"x\",\n  7,\n]\n\"q-r\" = 'l\\n'\n";
        let entry = |name: &str, line, value| Entry { name: name.to_owned(), line, value };
        let one = |text: &str| Value::One(text.to_owned());
        let expected = [
            entry("b", 2, one("64MiB")),
            entry("a", 4, Value::Flag(true)),
            entry("n", 5, one("4096")),
            entry("f", 6, one("1.5")),
            entry("m", 7, Value::Many(vec!["x".to_owned(), "7".to_owned()])),
            entry("q-r", 11, one("l\\n")),
        ];
        assert_eq!(parse(text).unwrap(), expected);
        assert_eq!(parse("").unwrap(), []);
    }

    #[test]
    fn problems_name_their_line() {
        for (text, line, words) in [
            ("a = 1\nb =\n", 2, ""),
            ("a = 1\n\na = 2\n", 3, "duplicate"),
            ("a = 1\n[serve]\nb = 1\n", 2, "without a table"),
            ("a = [true]\n", 1, "array of strings"),
            ("\na = 2026-01-01\n", 2, "expected a string"),
        ] {
            let problem = parse(text).unwrap_err();
            assert_eq!(problem.line, line, "{text:?}: {problem}");
            assert!(problem.reason.contains(words), "{text:?}: {problem}");
            assert!(!problem.reason.is_empty(), "{text:?}");
        }
    }
}
