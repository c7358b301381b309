//! The order of the entries of a page. Performs no I/O.

use std::cmp::Ordering;

use super::entry::Entry;

/// A column of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Column {
    #[default]
    Name,
    Size,
    Changed,
}

impl Column {
    pub(crate) const ALL: [Self; 3] = [Self::Name, Self::Size, Self::Changed];

    /// Returns the value of the parameter `sort` that selects the column.
    pub(crate) fn parameter(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Size => "size",
            Self::Changed => "changed",
        }
    }
}

/// The order of entries. Directories precede files in each order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Order {
    pub(crate) column: Column,
    pub(crate) is_descending: bool,
}

impl Order {
    /// Parses the value of the parameter `sort`, such as `size`, or `-size` for the largest first.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let descending = text.strip_prefix(b"-");
        let name = descending.unwrap_or(text);
        let column =
            Column::ALL.into_iter().find(|column| column.parameter().as_bytes() == name)?;
        Some(Self { column, is_descending: descending.is_some() })
    }

    /// Returns the order after a click on the head of `column`: reversed if the page is sorted by it.
    pub(crate) fn after_click(self, column: Column) -> Self {
        Self { column, is_descending: self.column == column && !self.is_descending }
    }

    /// Returns the reference to the page in this order.
    pub(crate) fn href(self) -> String {
        let sign = if self.is_descending { "-" } else { "" };
        format!("?sort={sign}{}", self.column.parameter())
    }

    /// Sorts entries. Entries that are equal in the column are sorted by name.
    pub(crate) fn sort(self, entries: &mut [Entry]) {
        let by_name = |a: &Entry, b: &Entry| natural(&a.name, &b.name);
        let by_column = |a: &Entry, b: &Entry| match self.column {
            Column::Name => by_name(a, b),
            Column::Size => a.bytes.cmp(&b.bytes),
            Column::Changed => a.modified_s.cmp(&b.modified_s),
        };
        entries.sort_by(|a, b| {
            let in_column = by_column(a, b);
            let in_column = if self.is_descending { in_column.reverse() } else { in_column };
            a.bytes.is_some().cmp(&b.bytes.is_some()).then(in_column).then_with(|| by_name(a, b))
        });
    }
}

/// Compares names as people order them: numbers by their value, so that `file2` precedes `file10`,
/// and letters without their case. Names that are equal otherwise are compared by bytes.
fn natural(a: &[u8], b: &[u8]) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        let (first, second) = match (left.first(), right.first()) {
            (Some(first), Some(second)) => (*first, *second),
            (first, second) => return first.is_some().cmp(&second.is_some()).then(a.cmp(b)),
        };
        let compared;
        if first.is_ascii_digit() && second.is_ascii_digit() {
            let (one, other);
            (one, left) = split_number(left);
            (other, right) = split_number(right);
            compared = one.len().cmp(&other.len()).then(one.cmp(other));
        } else {
            compared = first.to_ascii_lowercase().cmp(&second.to_ascii_lowercase());
            (left, right) = (&left[1..], &right[1..]);
        }
        if compared != Ordering::Equal {
            return compared;
        }
    }
}

/// Splits the digits off the beginning of a name, and returns them without leading zeros.
fn split_number(name: &[u8]) -> (&[u8], &[u8]) {
    let end = name.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(name.len());
    let zeros = name[..end].iter().take_while(|digit| **digit == b'0').count();
    (&name[zeros..end], &name[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_natural_order() {
        let ordered = [
            "", "0", "00", "1", "2", "10", "10a", "a", "A1", "a2", "a02b", "A10", "a10.txt",
            "a10b", "b", "é", "\u{ffff}",
        ];
        for (at, a) in ordered.iter().enumerate() {
            for (of, b) in ordered.iter().enumerate() {
                assert_eq!(natural(a.as_bytes(), b.as_bytes()), at.cmp(&of), "{a} {b}");
            }
        }
        let long = |digit: &str| format!("a{}", digit.repeat(300));
        assert_eq!(natural(long("1").as_bytes(), long("2").as_bytes()), Ordering::Less);
    }

    #[test]
    fn entries_are_sorted_by_each_column_with_directories_first() {
        let entry = |name: &str, bytes, modified_s| Entry { name: name.into(), bytes, modified_s };
        let entries = [
            entry("f10", Some(1), 30),
            entry("d1", None, 20),
            entry("f2", Some(5), 10),
            entry("D0", None, 40),
            entry("f1", Some(5), 10),
        ];
        for (sort, expected) in [
            ("name", "D0 d1 f1 f2 f10"),
            ("-name", "d1 D0 f10 f2 f1"),
            ("size", "D0 d1 f10 f1 f2"),
            ("-size", "D0 d1 f1 f2 f10"),
            ("changed", "d1 D0 f1 f2 f10"),
            ("-changed", "D0 d1 f10 f1 f2"),
        ] {
            let order = Order::parse(sort.as_bytes()).unwrap();
            assert_eq!(order.href(), format!("?sort={sort}"));
            let mut entries = entries.clone();
            order.sort(&mut entries);
            let names = entries.iter().map(|entry| String::from_utf8_lossy(&entry.name));
            assert_eq!(names.collect::<Vec<_>>().join(" "), expected, "{sort}");
        }
        for sort in ["", "-", "--size", "Size", "+size"] {
            assert_eq!(Order::parse(sort.as_bytes()), None, "{sort}");
        }
    }

    #[test]
    fn second_click_reverses_the_order() {
        let first = Order::default().after_click(Column::Size);
        assert_eq!(first, Order { column: Column::Size, is_descending: false });
        assert_eq!(first.after_click(Column::Size).href(), "?sort=-size");
        assert_eq!(first.after_click(Column::Size).after_click(Column::Size), first);
        assert_eq!(Order::default().after_click(Column::Name).href(), "?sort=-name");
    }
}
