//! The page of a listing that a request selects with its query. Performs no I/O.

use super::order::Order;
use crate::request::path::{decoded, encoded};

/// The maximal number of names on a page. A name may cost a disk read that other clients wait for,
/// and browsers handle pages of several megabytes badly.
pub(crate) const NAMES_MAX: usize = 10_000;

/// A page of a listing: `limit` names after the name `after`, in bytewise order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Cursor {
    /// Empty for the first page, because no name is empty.
    pub(crate) after: Box<[u8]>,
    pub(crate) limit: usize,
    /// The order in which an HTML page shows a directory whose names are all on it.
    pub(crate) order: Order,
}

impl Default for Cursor {
    fn default() -> Self {
        Self { after: Box::default(), limit: NAMES_MAX, order: Order::default() }
    }
}

impl Cursor {
    /// Parses a query such as `after=a%20name&limit=100`. Other parameters are ignored, and a limit
    /// above the maximum is the maximum. Returns `None` if a value is invalid.
    pub(crate) fn parse(query: &[u8]) -> Option<Self> {
        let mut cursor = Self::default();
        for parameter in query.split(|byte| *byte == b'&') {
            if let Some(name) = parameter.strip_prefix(b"after=") {
                cursor.after = decoded(name, &mut Vec::new()).ok()?.into();
            } else if let Some(limit) = parameter.strip_prefix(b"limit=") {
                cursor.limit = parse_limit(limit)?;
            } else if let Some(order) = parameter.strip_prefix(b"sort=") {
                cursor.order = Order::parse(order)?;
            }
        }
        Some(cursor)
    }

    /// Returns the reference to the next page, relative to the directory, if `last` is the last name
    /// of this page.
    pub(crate) fn next(&self, last: &[u8]) -> String {
        // Names have no slash, which would not be encoded.
        let after = encoded(last);
        match self.limit {
            NAMES_MAX => format!("?after={after}"),
            limit => format!("?after={after}&limit={limit}"),
        }
    }
}

fn parse_limit(text: &[u8]) -> Option<usize> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let text = str::from_utf8(text).ok().filter(|_| is_number)?;
    // A number of too many digits is above the maximum, too.
    let limit = text.parse().unwrap_or(usize::MAX).min(NAMES_MAX);
    (limit > 0).then_some(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_selects_names_and_their_number() {
        for (query, after, limit) in [
            ("", "", NAMES_MAX),
            ("after=", "", NAMES_MAX),
            ("limit=7", "", 7),
            ("limit=99999999999999999999999", "", NAMES_MAX),
            ("x=1&after=a%20%26b%3D+&limit=010&after", "a &b=+", 10),
        ] {
            let expected = Cursor { after: after.as_bytes().into(), limit, ..Cursor::default() };
            assert_eq!(Cursor::parse(query.as_bytes()), Some(expected), "{query}");
        }
        for query in [
            "limit=0",
            "limit=",
            "sort=",
            "sort=x",
            "limit=-1",
            "limit=+1",
            "after=%",
            "after=a%2Fb",
        ] {
            assert_eq!(Cursor::parse(query.as_bytes()), None, "{query}");
        }
    }

    #[test]
    fn reference_to_the_next_page_is_parsed_as_its_cursor() {
        for limit in [1, NAMES_MAX] {
            let cursor = Cursor { limit, ..Cursor::default() };
            for last in [&b"a"[..], b"&after=b#c?d=%41 +\"<'", b"\xff\n\xc3\xa4"] {
                let next = cursor.next(last);
                let expected = Cursor { after: last.into(), limit, ..Cursor::default() };
                assert_eq!(Cursor::parse(&next.as_bytes()[1..]), Some(expected), "{next}");
            }
        }
    }
}
