//! Parses and compares entity tags and lists of entity tags (RFC 9110, section 8.8.3).

use memchr::memchr;

/// An entity tag, such as `"5d41"` or `W/"5d41"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntityTag<'a> {
    /// The opaque tag with its quotes.
    quoted: &'a [u8],
    is_weak: bool,
}

impl<'a> EntityTag<'a> {
    /// Returns a strong entity tag. `quoted` is the opaque tag with its quotes.
    pub const fn strong(quoted: &'a [u8]) -> Self {
        Self { quoted, is_weak: false }
    }

    /// Parses a single tag; returns `None` if it is invalid.
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        let (quoted, is_weak) = match value.strip_prefix(b"W/") {
            Some(quoted) => (quoted, true),
            None => (value, false),
        };
        match quoted {
            [b'"', opaque @ .., b'"'] if memchr(b'"', opaque).is_none() => {
                Some(Self { quoted, is_weak })
            }
            _ => None,
        }
    }

    /// Returns `true` if both tags are strong and equal: the representations are identical byte for
    /// byte.
    pub fn strong_eq(&self, other: &Self) -> bool {
        !self.is_weak && !other.is_weak && self.quoted == other.quoted
    }

    /// Returns `true` if the opaque tags are equal.
    pub fn weak_eq(&self, other: &Self) -> bool {
        self.quoted == other.quoted
    }
}

/// The value of If-Match or If-None-Match: `*`, or a list of tags in one or more field lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TagList<'a> {
    lines: Vec<&'a [u8]>,
}

impl<'a> TagList<'a> {
    /// Adds the value of a field line.
    pub fn push_line(&mut self, value: &'a [u8]) {
        self.lines.push(value);
    }

    /// Returns `true` if a line is `*`, or contains a tag for which `is_equal` returns `true`.
    pub(super) fn any(&self, is_equal: impl Fn(&EntityTag<'a>) -> bool) -> bool {
        self.lines.iter().any(|line| line.trim_ascii() == b"*" || tags(line).any(|t| is_equal(&t)))
    }
}

impl<'a> FromIterator<&'a [u8]> for TagList<'a> {
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(lines: I) -> Self {
        Self { lines: lines.into_iter().collect() }
    }
}

/// Returns the tags of a line. The quotes delimit the tags, because a tag may contain commas.
fn tags(line: &[u8]) -> impl Iterator<Item = EntityTag<'_>> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let (before, from_quote) = rest.split_at(memchr(b'"', rest)?);
        let opaque_bytes = memchr(b'"', &from_quote[1..])?;
        let (quoted, after) = from_quote.split_at(opaque_bytes + 2);
        rest = after;
        Some(EntityTag { quoted, is_weak: before.ends_with(b"W/") })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_tags_need_quotes_and_a_capital_w() {
        for (value, is_weak) in [
            ("\"\"", Some(false)),
            ("\"a,b\"", Some(false)),
            ("W/\"a\"", Some(true)),
            ("", None),
            ("\"", None),
            ("a", None),
            ("\"a", None),
            ("w/\"a\"", None),
            ("W/a", None),
            ("\"a\"b\"", None),
            ("*", None),
        ] {
            let parsed = EntityTag::parse(value.as_bytes()).map(|tag| tag.is_weak);
            assert_eq!(parsed, is_weak, "{value}");
        }
    }

    #[test]
    fn weak_tags_are_only_equal_by_weak_comparison() {
        // The cases of the table in section 8.8.3.2.
        for (one, other, is_strong_eq, is_weak_eq) in [
            ("W/\"1\"", "W/\"1\"", false, true),
            ("W/\"1\"", "W/\"2\"", false, false),
            ("W/\"1\"", "\"1\"", false, true),
            ("\"1\"", "\"1\"", true, true),
        ] {
            let one = EntityTag::parse(one.as_bytes()).unwrap();
            let other = EntityTag::parse(other.as_bytes()).unwrap();
            assert_eq!(one.strong_eq(&other), is_strong_eq, "{one:?} {other:?}");
            assert_eq!(one.weak_eq(&other), is_weak_eq, "{one:?} {other:?}");
        }
    }
}
