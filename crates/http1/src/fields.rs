//! Iterates over the fields of a parsed head.

use memchr::memchr;

/// One field of a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// The name as received.
    pub name: &'a [u8],
    /// The value without surrounding whitespace. It contains no control bytes except tabs.
    pub value: &'a [u8],
}

impl Field<'_> {
    /// Returns `true` if the field has this name, ignoring case.
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }
}

/// The fields of a head, in order.
///
/// Each iteration parses the lines again, so a caller that needs several fields should iterate
/// once.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    /// Complete lines of the form `name:value\r\n`, validated by the parser.
    lines: &'a [u8],
    count: usize,
}

impl<'a> Fields<'a> {
    pub(crate) const fn new(lines: &'a [u8], count: usize) -> Self {
        Self { lines, count }
    }

    /// Returns the number of fields.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Returns the value of the first field with this name, ignoring case.
    pub fn first(&self, name: &str) -> Option<&'a [u8]> {
        (*self).into_iter().find(|field| field.is(name)).map(|field| field.value)
    }

    /// Returns the values of all fields with this name, ignoring case.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        (*self).into_iter().filter(move |field| field.is(name)).map(|field| field.value)
    }
}

impl<'a> IntoIterator for Fields<'a> {
    type Item = Field<'a>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        Iter { rest: self.lines }
    }
}

/// An iterator over the fields of a head.
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Iter<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let colon = memchr(b':', self.rest)?;
        let (name, rest) = self.rest.split_at_checked(colon)?;
        let (value, rest) = rest.split_at_checked(memchr(b'\n', rest)? + 1)?;
        self.rest = rest;
        // Only the parser of responses accepts blanks before the colon.
        let name = name.trim_ascii_end();
        Some(Field { name, value: value.get(1..)?.trim_ascii() })
    }
}

/// Returns the members of a comma-separated list, trimmed; empty members are skipped.
pub fn list_members(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|member| !member.is_empty())
}

/// Returns `true` for a `tchar`, a byte of a method or field name.
pub(crate) const fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_'
        )
        || matches!(byte, b'`' | b'|' | b'~')
}

/// Returns `true` for a `token`, such as a method or field name.
pub(crate) fn is_token(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| is_token_byte(*byte))
}

/// Returns `true` for a byte that a field value may contain: visible ASCII, space, tab, or above
/// ASCII.
pub(crate) const fn is_value_byte(byte: u8) -> bool {
    matches!(byte, b'\t' | b' '..=b'~' | 0x80..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_in_order_with_trimmed_values() {
        let fields = Fields::new(b"A:1\r\nb-b: \t two words \t\r\nC:\r\na: http://x:1\r\n", 4);
        let parsed: Vec<_> = fields.into_iter().map(|field| (field.name, field.value)).collect();
        let expected: [(&[u8], &[u8]); 4] =
            [(b"A", b"1"), (b"b-b", b"two words"), (b"C", b""), (b"a", b"http://x:1")];
        assert_eq!(parsed, expected);
        assert_eq!(fields.first("a"), Some(&b"1"[..]));
        assert_eq!(fields.first("B-B"), Some(&b"two words"[..]));
        assert_eq!(fields.first("d"), None);
        assert_eq!(fields.all("A").count(), 2);
    }

    #[test]
    fn list_members_are_trimmed_and_empty_ones_skipped() {
        let all = |list: &'static str| {
            list_members(list.as_bytes())
                .map(|one| str::from_utf8(one).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(all("close"), ["close"]);
        assert_eq!(all(" a ,\tb c,, ,d"), ["a", "b c", "d"]);
        assert_eq!(all(""), [""; 0]);
    }
}
