//! Selects the lines of a range of times from a stream of bytes. Pure.

use std::ops::Range;

use crate::calendar::{STAMP_BYTES_MAX, parse_stamp};

/// `true` if a line that begins in `bytes` has a timestamp.
pub(super) fn has_stamp(bytes: &[u8]) -> bool {
    bytes.split(|byte| *byte == b'\n').any(|line| parse_stamp(line).is_some())
}

/// A selection in progress: the position in the stream, relative to the range.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scan {
    /// The beginning of the range in microseconds; `None` if the position is not before the range.
    since: Option<u64>,
    until: Option<u64>,
    is_over: bool,
    is_line_start: bool,
}

/// The lines found in a piece of the stream.
#[derive(Debug)]
pub(super) struct Found {
    /// The bytes of the range.
    pub(super) lines: Range<usize>,
    /// The number of bytes examined. The next piece begins with the bytes after them.
    pub(super) done: usize,
}

impl Scan {
    pub(super) fn new(since: Option<u64>, until: Option<u64>) -> Self {
        Self { since, until, is_over: false, is_line_start: true }
    }

    /// `true` if the stream is after the end of the range.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Examines the next piece of the stream. `is_last` is `true` if the stream ends with it.
    pub(super) fn next(&mut self, bytes: &[u8], is_last: bool) -> Found {
        let is_within = |scan: &Self| scan.since.is_none() && !scan.is_over;
        if is_within(self) && self.until.is_none() {
            return Found { lines: 0..bytes.len(), done: bytes.len() };
        }
        let mut begin = is_within(self).then_some(0);
        let mut at = 0;
        while !self.is_over {
            if !self.is_line_start {
                at += match memchr::memchr(b'\n', &bytes[at..]) {
                    Some(newline) => newline + 1,
                    None => bytes.len() - at,
                };
                self.is_line_start = at > 0 && bytes[at - 1] == b'\n';
            }
            if at == bytes.len() || bytes.len() - at < STAMP_BYTES_MAX && !is_last {
                break;
            }
            self.is_line_start = false;
            if let Some(us) = parse_stamp(&bytes[at..]) {
                if self.since.is_some_and(|since| us >= since) {
                    self.since = None;
                    begin = Some(at);
                }
                self.is_over = self.until.is_some_and(|until| us >= until);
            }
        }
        let lines = begin.map_or(0..0, |begin| begin..at);
        Found { lines, done: if self.is_over { bytes.len() } else { at } }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Scans `text` in pieces of up to `piece` bytes.
    fn select(text: &[u8], since: Option<u64>, until: Option<u64>, piece: usize) -> Vec<u8> {
        let mut scan = Scan::new(since, until);
        let (mut selected, mut from, mut to) = (Vec::new(), 0, 0);
        while !scan.is_over() && (to < text.len() || from < to) {
            to = (to + piece).min(text.len());
            let found = scan.next(&text[from..to], to == text.len());
            selected.extend_from_slice(&text[from..to][found.lines]);
            from += found.done;
        }
        selected
    }

    const TEXT: &[u8] = b"end of a line\n1000000001.000000 a\nmore of a\n\n1000000002.000000 b\n\
        1000000002.500000 c\nmore of c\n1000000003.000000 d, incomplete";

    fn seconds(seconds: u64) -> Option<u64> {
        Some((1_000_000_000 + seconds) * 1_000_000)
    }

    #[test]
    fn lines_without_timestamp_belong_to_the_preceding_line() {
        for piece in [1, 2, 7, 30, 1000] {
            let select =
                |since, until| String::from_utf8(select(TEXT, since, until, piece)).unwrap();
            let all = str::from_utf8(TEXT).unwrap();
            let from = |text: &str| all[all.find(text).unwrap()..].to_owned();
            let up_to = |text: &str| all[..all.find(text).unwrap()].to_owned();
            assert_eq!(select(None, None), all);
            assert_eq!(select(seconds(0), None), from("1000000001"));
            assert_eq!(select(seconds(2), None), from("1000000002.0"));
            assert_eq!(select(seconds(3), None), from("1000000003"));
            assert_eq!(select(seconds(4), None), "");
            assert_eq!(select(None, seconds(0)), "end of a line\n");
            assert_eq!(select(None, seconds(2)), up_to("1000000002.0"));
            assert_eq!(select(None, seconds(4)), all);
            let middle = select(seconds(2), seconds(3));
            assert_eq!(from("1000000002.0"), middle + "1000000003.000000 d, incomplete");
            assert_eq!(select(seconds(2), seconds(2)), "");
            assert_eq!(select(seconds(3), seconds(1)), "");
        }
    }

    #[test]
    fn timestamps_are_found_after_the_first_line() {
        assert!(has_stamp(TEXT) && has_stamp(b"1000000001.000000 a"));
        assert!(!has_stamp(b"a 1000000001.000000 a\nb\n") && !has_stamp(b""));
    }

    proptest! {
        #[test]
        fn pieces_of_any_length_give_the_same_lines(
            lines in proptest::collection::vec((any::<bool>(), 0..5_u64, "[a-z\n]{0,40}"), 0..20),
            since in proptest::option::of(0..40_u64), until in proptest::option::of(0..40_u64),
            piece in 1..80_usize,
        ) {
            let (mut now, mut text, mut expected) = (0, String::new(), String::new());
            let (mut is_within, mut is_over) = (since.is_none(), false);
            for (is_stamped, more, line) in lines {
                let line = line.replace('\n', "\n-");
                let line = if is_stamped {
                    now += more;
                    is_within |= since.is_some_and(|since| now >= since);
                    is_over |= until.is_some_and(|until| now >= until);
                    format!("{}.000000 {line}\n", 1_000_000_000 + now)
                } else {
                    format!("-{line}\n")
                };
                text += &line;
                if is_within && !is_over {
                    expected += &line;
                }
            }
            let us = |limit: Option<u64>| limit.and_then(seconds);
            let found = select(text.as_bytes(), us(since), us(until), piece);
            prop_assert_eq!(String::from_utf8(found).unwrap(), expected);
        }
    }
}
