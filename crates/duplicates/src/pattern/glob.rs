//! Translates globs to regular expressions.
//!
//! `*` and `?` do not match `/`, but `**` does. Also supported are `[a-z]`, `[!a]`, `{a,b}`, and
//! the extended globs `?(a|b)`, `*(…)`, `+(…)`, `@(…)`, `!(…)`. A backslash escapes the next
//! character.

/// An expression that matches any bytes.
const ANY: &str = "(?s-u:.)*";
/// An expression that matches a character other than `/`, or a byte of invalid UTF-8.
const NOT_SLASH: &str = "(?:[^/]|(?-u:[^/]))";

/// The translation of a glob.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GlobRegexes {
    /// A regular expression that a matching name or path must match.
    pub(super) positive: String,
    /// Regular expressions that a matching name or path must not match.
    pub(super) negative: Vec<String>,
}

/// Translates a glob. The positive expression replaces each `!(…)` by `*`. For each `!(…)` there is
/// one negative expression: it replaces this `!(…)` by its alternatives, and each other `!(…)` by
/// `*`. Names that match a negative expression are excluded.
///
/// # Errors
/// Fails with a description of the syntax error.
pub(super) fn translate(glob: &str) -> Result<GlobRegexes, &'static str> {
    let all = Translation::of(glob, None)?;
    let mut negative = Vec::new();
    for number in 0..all.negations {
        negative.push(Translation::of(glob, Some(number))?.regex);
    }
    Ok(GlobRegexes { positive: all.regex, negative })
}

/// An open bracket.
struct Bracket {
    close: char,
    /// The regular expression for the closing bracket.
    end: String,
    /// The start of a `!(…)` in the regular expression, if it is replaced by `*`.
    star_at: Option<usize>,
}

#[derive(Default)]
struct Translation {
    regex: String,
    /// The open brackets, innermost last.
    open: Vec<Bracket>,
    negations: usize,
}

impl Translation {
    /// Translates a glob. The negation (`!(…)`) with the index `counted` becomes its alternatives;
    /// all other negations become `*`.
    fn of(glob: &str, counted: Option<usize>) -> Result<Self, &'static str> {
        let mut all = Self::default();
        let mut rest = glob;
        while let Some(character) = rest.chars().next() {
            let (part, after) = rest.split_at(character.len_utf8());
            rest = match character {
                '!' if after.starts_with('(') => {
                    if !all.open.is_empty() {
                        return Err("!(…) is not supported within other brackets");
                    }
                    let is_counted = counted == Some(all.negations);
                    all.negations += 1;
                    let star_at = (!is_counted).then_some(all.regex.len());
                    all.begin(')', ")", star_at);
                    &after[1..]
                }
                '?' | '*' | '+' | '@' if after.starts_with('(') => {
                    all.begin(')', &format!("){}", part.trim_matches('@')), None);
                    &after[1..]
                }
                _ => all.next(character, part, after),
            };
        }
        Ok(all)
    }

    fn begin(&mut self, close: char, end: &str, star_at: Option<usize>) {
        self.regex.push_str("(?:");
        self.open.push(Bracket { close, end: end.to_owned(), star_at });
    }

    fn is_in(&self, close: char) -> bool {
        self.open.last().is_some_and(|open| open.close == close)
    }

    /// Translates a character that does not start an extended glob; returns the rest of the glob.
    fn next<'a>(&mut self, character: char, part: &str, after: &'a str) -> &'a str {
        match character {
            '*' if after.starts_with('*') => return self.stars(after.trim_start_matches('*')),
            '*' => self.regex.push_str(&format!("{NOT_SLASH}*")),
            '?' => self.regex.push_str(NOT_SLASH),
            '[' => return class(&mut self.regex, after),
            '{' => self.begin('}', ")", None),
            ',' if self.is_in('}') => self.regex.push('|'),
            '|' if self.is_in(')') => self.regex.push('|'),
            _ if self.is_in(character) => self.end(),
            '\\' if !after.is_empty() => {
                let escaped = after.chars().next().map_or(0, char::len_utf8);
                self.regex.push_str(&regex::escape(&after[..escaped]));
                return &after[escaped..];
            }
            _ => self.regex.push_str(&regex::escape(part)),
        }
        after
    }

    fn end(&mut self) {
        match self.open.pop() {
            Some(Bracket { star_at: Some(at), .. }) => {
                self.regex.truncate(at);
                self.regex.push_str(&format!("{NOT_SLASH}*"));
            }
            Some(Bracket { end, .. }) => self.regex.push_str(&end),
            None => {}
        }
    }

    /// Translates `**`; returns the rest of the glob.
    fn stars<'a>(&mut self, rest: &'a str) -> &'a str {
        let is_part = self.regex.is_empty() || self.regex.ends_with('/');
        match rest.strip_prefix('/').filter(|_| is_part) {
            // `**/` also matches the empty path: "**/a" matches "a".
            Some(below) => {
                self.regex.push_str(&format!("(?:{ANY}/)?"));
                below
            }
            None => {
                self.regex.push_str(ANY);
                rest
            }
        }
    }
}

/// Translates a bracket expression; returns the rest of the glob. An unclosed `[` matches itself.
fn class<'a>(regex: &mut String, text: &'a str) -> &'a str {
    let is_negated = text.starts_with(['!', '^']);
    let inside = &text[usize::from(is_negated)..];
    // A `]` at the start is a member of the set.
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
