//! Globs as regular expressions. Pure.
//!
//! `*` and `?` stay within a part of a path, `**` does not; `[a-z]`, `[!a]`, `{a,b}`, and the
//! extended `?(a|b)`, `*(…)`, `+(…)`, `@(…)`, `!(…)`; a backslash takes the meaning from what
//! follows.

/// Any byte, and any character (or byte that is none) but the one that parts a path.
const ANY: &str = "(?s-u:.)*";
const IN_PART: &str = "(?:[^/]|(?-u:[^/]))";

/// What a glob says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Said {
    /// What matches.
    pub(super) is: String,
    /// And what does not, though it does by the first.
    pub(super) is_not: Vec<String>,
}

/// Reads a glob. With a `!(…)` in it all matches that does with a `*` in its place, and none that
/// does with one of what is in the brackets: that is twice a regular expression.
///
/// # Errors
/// What cannot be understood.
pub(super) fn read(glob: &str) -> Result<Said, &'static str> {
    let all = Translation::of(glob, None)?;
    let mut is_not = Vec::new();
    for number in 0..all.negations {
        is_not.push(Translation::of(glob, Some(number))?.regex);
    }
    Ok(Said { is: all.regex, is_not })
}

/// What closes brackets that are open.
struct Open {
    close: char,
    /// What is written then.
    end: String,
    /// Where a negation began that does not count here.
    star_at: Option<usize>,
}

#[derive(Default)]
struct Translation {
    regex: String,
    /// The brackets that are open, innermost last.
    open: Vec<Open>,
    negations: usize,
}

impl Translation {
    /// Translates; the negation with the number `counted` stands for what is in its brackets, and
    /// the others for anything.
    fn of(glob: &str, counted: Option<usize>) -> Result<Self, &'static str> {
        let mut all = Self::default();
        let mut rest = glob;
        while let Some(character) = rest.chars().next() {
            let (part, after) = rest.split_at(character.len_utf8());
            rest = match character {
                '!' if after.starts_with('(') => {
                    if !all.open.is_empty() {
                        return Err("!(…) cannot stand within other brackets");
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
        self.open.push(Open { close, end: end.to_owned(), star_at });
    }

    fn is_in(&self, close: char) -> bool {
        self.open.last().is_some_and(|open| open.close == close)
    }

    /// Takes a character that begins no extended pattern; gives what is left.
    fn next<'a>(&mut self, character: char, part: &str, after: &'a str) -> &'a str {
        match character {
            '*' if after.starts_with('*') => return self.stars(after.trim_start_matches('*')),
            '*' => self.regex.push_str(&format!("{IN_PART}*")),
            '?' => self.regex.push_str(IN_PART),
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
            Some(Open { star_at: Some(at), .. }) => {
                self.regex.truncate(at);
                self.regex.push_str(&format!("{IN_PART}*"));
            }
            Some(Open { end, .. }) => self.regex.push_str(&end),
            None => {}
        }
    }

    /// Takes `**`; gives what is left of `rest`.
    fn stars<'a>(&mut self, rest: &'a str) -> &'a str {
        let is_part = self.regex.is_empty() || self.regex.ends_with('/');
        match rest.strip_prefix('/').filter(|_| is_part) {
            // Also nothing: "**/a" matches "a".
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
