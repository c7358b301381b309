//! Which bytes of a file a request asks for. Pure.

use std::ops::Range;

/// More ranges than this in one request are not for reading.
const RANGES_MAX: usize = 32;

/// What of a file is wanted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All of it: nothing else was asked for, or so strangely that it is passed over.
    All,
    /// One range, not empty.
    One(Range<u64>),
    /// Several, each not empty, in the order in which they were asked for.
    Many(Vec<Range<u64>>),
    /// Nothing that is there: 416.
    Nothing,
}

/// Reads the value of `Range` for a file of `file_bytes`.
///
/// What is not understood is passed over, as RFC 9110 wants it, and so are more than
/// 32 ranges, and ranges that together are longer than the file: they are a way to make
/// much work of a small request.
pub(crate) fn wanted(value: &[u8], file_bytes: u64) -> Wanted {
    // Some clients ask for a range of everything; of an empty file there is none.
    if file_bytes == 0 {
        return Wanted::All;
    }
    let Some(list) = strip_unit(value) else { return Wanted::All };
    let mut ranges = Vec::new();
    let mut asked = 0;
    for one in list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
        if one.is_empty() {
            continue;
        }
        asked += 1;
        match range(one, file_bytes) {
            Some(_) if asked > RANGES_MAX => return Wanted::All,
            None => return Wanted::All,
            Some(range) if range.is_empty() => {}
            Some(range) => ranges.push(range),
        }
    }
    let sum = ranges.iter().fold(0_u64, |sum, range| sum.saturating_add(range.end - range.start));
    match ranges.len() {
        0 if asked == 0 => Wanted::All,
        0 => Wanted::Nothing,
        1 => Wanted::One(ranges.remove(0)),
        _ if sum > file_bytes => Wanted::All,
        _ => Wanted::Many(ranges),
    }
}

fn strip_unit(value: &[u8]) -> Option<&[u8]> {
    let (unit, list) = value.split_at_checked(6)?;
    unit.eq_ignore_ascii_case(b"bytes=").then_some(list)
}

/// One range of the list; empty when it lies outside of the file.
fn range(text: &[u8], file_bytes: u64) -> Option<Range<u64>> {
    let dash = memchr::memchr(b'-', text)?;
    let (first, last) = (text[..dash].trim_ascii(), text[dash + 1..].trim_ascii());
    if first.is_empty() {
        return Some(file_bytes.saturating_sub(number(last)?)..file_bytes);
    }
    let first = number(first)?;
    let end = match last {
        b"" => file_bytes,
        last => {
            let last = number(last)?;
            if last < first {
                return None;
            }
            last.saturating_add(1).min(file_bytes)
        }
    };
    Some(first.min(file_bytes)..end)
}

/// Digits alone; what is too large for the machine is larger than any file.
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

    use super::*;

    #[test]
    fn one_range_is_cut_at_the_end_of_the_file() {
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
            assert_eq!(wanted(value.as_bytes(), 10), Wanted::One(range), "{value}");
        }
    }

    #[test]
    fn what_is_not_there_is_refused() {
        for value in
            ["bytes=10-", "bytes=10-10", "bytes=-0", "bytes=99-,88-", "bytes=18446744073709551616-"]
        {
            assert_eq!(wanted(value.as_bytes(), 10), Wanted::Nothing, "{value}");
        }
    }

    #[test]
    fn what_is_not_understood_is_passed_over() {
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
            assert_eq!(wanted(value.as_bytes(), 10), Wanted::All, "{value}");
        }
        assert_eq!(wanted(b"bytes=0-", 0), Wanted::All);
        assert_eq!(wanted(b"bytes=-5", 0), Wanted::All);
    }

    #[test]
    fn several_ranges_come_in_the_order_asked_for_unless_they_are_too_much() {
        let many = |value: &str| wanted(value.as_bytes(), 100);
        assert_eq!(many("bytes=50-59, 0-9,-1"), Wanted::Many(vec![50..60, 0..10, 99..100]));
        assert_eq!(many("bytes=0-59,40-79"), Wanted::Many(vec![0..60, 40..80]), "just as long");
        assert_eq!(many("bytes=0-59,40-80"), Wanted::All, "a byte longer than the file");
        assert_eq!(many("bytes=0-,0-,0-,0-"), Wanted::All);
        let some = |count: usize| {
            let list: Vec<_> = (0..count).map(|at| format!("{at}-{at}")).collect();
            many(&format!("bytes={}", list.join(",")))
        };
        assert!(matches!(some(RANGES_MAX), Wanted::Many(ranges) if ranges.len() == RANGES_MAX));
        assert_eq!(some(RANGES_MAX + 1), Wanted::All);
    }

    proptest! {
        #[test]
        fn whatever_is_asked_for_lies_in_the_file(
            value in "bytes=[0-9,-]{0,30}",
            file_bytes in 0_u64..2000,
        ) {
            let lies = |range: &Range<u64>| range.start < range.end && range.end <= file_bytes;
            match wanted(value.as_bytes(), file_bytes) {
                Wanted::One(range) => prop_assert!(lies(&range)),
                Wanted::Many(ranges) => prop_assert!(ranges.len() > 1 && ranges.iter().all(lies)),
                Wanted::All | Wanted::Nothing => {}
            }
        }
    }
}
