//! Parses the Range field and selects the requested bytes (RFC 9110, section 14). Performs no I/O.

use std::ops::Range;

use memchr::memchr;

/// The maximum number of ranges in one request; a Range field with more is ignored.
const RANGES_MAX: usize = 32;

/// A byte range as requested, before the length of the representation is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteRange {
    /// The bytes from a first to a last position, inclusive, or to the end.
    FromTo {
        /// The first position.
        first: u64,
        /// The last position; `None` means the end.
        last: Option<u64>,
    },
    /// The last bytes of the representation.
    Suffix {
        /// The number of bytes.
        bytes: u64,
    },
}

impl ByteRange {
    /// Returns the positions of the range in a representation of `length` bytes; `None` if the
    /// range contains no byte of the representation.
    pub fn resolve(self, length: u64) -> Option<Range<u64>> {
        let range = match self {
            Self::FromTo { first, last: None } => first..length,
            Self::FromTo { first, last: Some(last) } => first..last.saturating_add(1).min(length),
            Self::Suffix { bytes } => length.saturating_sub(bytes)..length,
        };
        (!range.is_empty()).then_some(range)
    }

    /// Parses one member of the list in a Range field.
    fn parse(text: &[u8]) -> Option<Self> {
        let dash = memchr(b'-', text)?;
        let (first, last) = (text[..dash].trim_ascii(), text[dash + 1..].trim_ascii());
        if first.is_empty() {
            return Some(Self::Suffix { bytes: number(last)? });
        }
        let first = number(first)?;
        let last = if last.is_empty() { None } else { Some(number(last)?) };
        last.is_none_or(|last| first <= last).then_some(Self::FromTo { first, last })
    }
}

/// The bytes selected by a Range field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RangeSelection {
    /// All bytes, because the Range field is ignored.
    Whole,
    /// One range, which is not empty.
    Single(Range<u64>),
    /// Several ranges in the order of the request, none of them empty.
    Multiple(Vec<Range<u64>>),
    /// No byte of the representation: the response is 416.
    Unsatisfiable,
}

impl RangeSelection {
    /// Evaluates the value of a Range field for a representation of `length` bytes.
    ///
    /// Invalid fields, unknown units, and any range of an empty representation are ignored, as
    /// section 14.2 permits. More than 32 ranges, and ranges that together are longer than the
    /// representation, are ignored, too, because a small request would cause much work.
    pub fn of(value: &[u8], length: u64) -> Self {
        if length == 0 {
            return Self::Whole;
        }
        let Some(list) = strip_unit(value) else { return Self::Whole };
        let mut ranges = Vec::new();
        let mut count = 0;
        let mut sum = 0_u64;
        for member in crate::list_members(list) {
            count += 1;
            let Some(range) = ByteRange::parse(member).filter(|_| count <= RANGES_MAX) else {
                return Self::Whole;
            };
            if let Some(range) = range.resolve(length) {
                sum = sum.saturating_add(range.end - range.start);
                ranges.push(range);
            }
        }
        match ranges.len() {
            0 if count == 0 => Self::Whole,
            0 => Self::Unsatisfiable,
            1 => Self::Single(ranges.remove(0)),
            _ if sum > length => Self::Whole,
            _ => Self::Multiple(ranges),
        }
    }
}

/// Returns the value of Content-Range for a part; `range` must not be empty.
pub fn content_range(range: &Range<u64>, length: u64) -> String {
    format!("bytes {}-{}/{length}", range.start, range.end.saturating_sub(1))
}

/// Returns the value of Content-Range of a 416 response.
pub fn unsatisfied_content_range(length: u64) -> String {
    format!("bytes */{length}")
}

fn strip_unit(value: &[u8]) -> Option<&[u8]> {
    let (unit, list) = value.split_at_checked(6)?;
    unit.eq_ignore_ascii_case(b"bytes=").then_some(list)
}

/// Parses decimal digits; a number too large for 64 bits becomes the largest 64-bit number.
fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let add = |sum: u64, digit: &u8| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    Some(text.iter().fold(0, add))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::RangeSelection::{Multiple, Single, Unsatisfiable, Whole};
    use super::*;

    #[test]
    fn single_ranges_are_cut_at_the_end() {
        for (value, range) in [
            ("bytes=0-0", 0..1),
            ("bytes=2-5", 2..6),
            ("bytes=7-99", 7..10),
            ("bytes=9-9", 9..10),
            ("bytes=3-", 3..10),
            ("bytes=-4", 6..10),
            ("bytes=-99", 0..10),
            ("BYTES=0-18446744073709551615", 0..10),
            ("bytes=0-99999999999999999999999", 0..10),
            ("bytes= 1 - 2 ", 1..3),
            ("bytes=,,1-2,", 1..3),
            ("bytes=1-2,20-30", 1..3),
        ] {
            assert_eq!(RangeSelection::of(value.as_bytes(), 10), Single(range), "{value}");
        }
    }

    #[test]
    fn ranges_past_the_end_are_unsatisfiable() {
        for value in
            ["bytes=10-", "bytes=10-10", "bytes=-0", "bytes=99-,88-", "bytes=18446744073709551616-"]
        {
            assert_eq!(RangeSelection::of(value.as_bytes(), 10), Unsatisfiable, "{value}");
        }
        for range in [ByteRange::Suffix { bytes: 5 }, ByteRange::FromTo { first: 0, last: None }] {
            assert_eq!(range.resolve(0), None, "{range:?} of an empty representation");
        }
    }

    #[test]
    fn invalid_fields_are_ignored() {
        for value in [
            "",
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes=a-b",
            "bytes=1",
            "bytes=-",
            "bytes=5-4",
            "bytes=+1-2",
            "bytes=1-2-3",
            "bytes=--1",
            "items=0-1",
            "bytes 0-1",
            "bytes=0-1,x",
            "bytes=0x1-2",
            "bytes:0-1",
            "bytes=1-2;3-4",
        ] {
            assert_eq!(RangeSelection::of(value.as_bytes(), 10), Whole, "{value}");
        }
        assert_eq!(RangeSelection::of(b"bytes=0-", 0), Whole);
        assert_eq!(RangeSelection::of(b"bytes=-5", 0), Whole);
    }

    #[test]
    fn several_ranges_keep_their_order_unless_they_are_excessive() {
        let select = |value: &str| RangeSelection::of(value.as_bytes(), 100);
        assert_eq!(select("bytes=50-59, 0-9,-1"), Multiple(vec![50..60, 0..10, 99..100]));
        assert_eq!(select("bytes=0-59,40-79"), Multiple(vec![0..60, 40..80]), "equally long");
        assert_eq!(select("bytes=0-59,40-80"), Whole, "longer by a byte");
        assert_eq!(select("bytes=0-,0-,0-,0-"), Whole);
        let single_bytes = |count: usize| {
            let list: Vec<_> = (0..count).map(|at| format!("{at}-{at}")).collect();
            select(&format!("bytes={}", list.join(",")))
        };
        let most = single_bytes(RANGES_MAX);
        assert!(matches!(most, Multiple(ranges) if ranges.len() == RANGES_MAX));
        assert_eq!(single_bytes(RANGES_MAX + 1), Whole);
    }

    #[test]
    fn content_ranges_are_inclusive() {
        assert_eq!(content_range(&(2..6), 10), "bytes 2-5/10");
        assert_eq!(unsatisfied_content_range(10), "bytes */10");
    }

    proptest! {
        #[test]
        fn selected_ranges_lie_in_the_representation(
            value in "bytes=[0-9,-]{0,30}",
            length in 0_u64..2000,
        ) {
            let lies = |range: &Range<u64>| range.start < range.end && range.end <= length;
            match RangeSelection::of(value.as_bytes(), length) {
                Single(range) => prop_assert!(lies(&range)),
                Multiple(ranges) => prop_assert!(ranges.len() > 1 && ranges.iter().all(lies)),
                Whole | Unsatisfiable => {}
            }
        }
    }
}
