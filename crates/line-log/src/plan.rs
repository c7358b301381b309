//! When a file is full or old, what of a buffer still goes into it, and which files may go. Pure.

use std::time::Duration;

use crate::options::Keep;

/// What is known of the file lines go into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Filled {
    /// How long it is.
    pub(crate) bytes: u64,
    /// Whether a line ends where it ends; so it is with an empty one.
    pub(crate) at_line_end: bool,
}

/// How many of `bytes` still go into this file: all, or those up to the end of a line.
///
/// Lines stay whole while that leaves the file at most twice as long as it should be. A line
/// longer than that is cut: read one after the other, the files give it back.
pub(crate) fn cut(file: Filled, bytes: &[u8], bytes_max: u64) -> usize {
    let room = |bytes_max: u64| {
        let room = bytes_max.saturating_sub(file.bytes);
        usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len())
    };
    let within = room(bytes_max);
    if within == bytes.len() {
        return within;
    }
    if let Some(last) = memchr::memrchr(b'\n', &bytes[..within]) {
        return last + 1;
    }
    if file.at_line_end && file.bytes > 0 {
        return 0;
    }
    let at_most = room(bytes_max.saturating_mul(2));
    memchr::memchr(b'\n', &bytes[within..at_most]).map_or(at_most, |first| within + first + 1)
}

/// How many of `bytes` belong to the line that was begun in the file.
pub(crate) fn line_end(file: Filled, bytes: &[u8]) -> usize {
    if file.at_line_end {
        return 0;
    }
    memchr::memchr(b'\n', bytes).map_or(bytes.len(), |first| first + 1)
}

/// Where the line begins in which the first `done` of `bytes` end.
pub(crate) fn line_start(bytes: &[u8], done: usize) -> usize {
    memchr::memrchr(b'\n', &bytes[..done]).map_or(0, |last| last + 1)
}

/// Which of the intervals since 1970 a moment is in.
fn interval(at_us: u64, every: Duration) -> u64 {
    at_us / every_us(every)
}

fn every_us(every: Duration) -> u64 {
    u64::try_from(every.as_micros()).unwrap_or(u64::MAX).max(1)
}

/// Whether a file begun at `begun_us` is to be closed, now that it is `now_us`. A clock set back
/// into an earlier interval closes nothing: else it would again and again.
pub(crate) fn is_old(begun_us: u64, now_us: u64, every: Duration) -> bool {
    interval(now_us, every) > interval(begun_us, every)
}

/// How long until the next interval begins.
pub(crate) fn until_next(now_us: u64, every: Duration) -> Duration {
    let every_us = every_us(every);
    Duration::from_micros(every_us - now_us % every_us)
}

/// A closed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kept {
    /// When it was closed.
    pub(crate) at_us: u64,
    /// How long it is.
    pub(crate) bytes: u64,
}

/// How many of the closed files, oldest first, may go. `current_bytes` is what the file being
/// written may grow to.
pub(crate) fn to_remove(
    closed: impl DoubleEndedIterator<Item = Kept> + ExactSizeIterator,
    keep: &Keep,
    current_bytes: u64,
    now_us: u64,
) -> usize {
    let mut kept = 0;
    let mut total = current_bytes;
    let count = closed.len();
    for file in closed.rev() {
        total = total.saturating_add(file.bytes);
        let age = Duration::from_micros(now_us.saturating_sub(file.at_us));
        let too_many = keep.files_max.is_some_and(|files_max| kept >= files_max as usize);
        let too_much = keep.bytes_max.is_some_and(|bytes_max| total > bytes_max);
        let too_old = keep.age_max.is_some_and(|age_max| age > age_max);
        if too_many || too_much || too_old {
            break;
        }
        kept += 1;
    }
    count - kept
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut_at(bytes: u64, at_line_end: bool, text: &str, bytes_max: u64) -> usize {
        cut(Filled { bytes, at_line_end }, text.as_bytes(), bytes_max)
    }

    #[test]
    fn a_file_ends_where_a_line_ends() {
        for (bytes, at_line_end, text, expected, why) in [
            (0, true, "ab\ncd\n", 6, "all of it fits"),
            (4, true, "ab\ncd\n", 6, "it just fits"),
            (5, true, "ab\ncd\n", 3, "one line fits"),
            (8, true, "ab\ncd\n", 0, "no line fits"),
            (8, false, "ab\ncd\n", 3, "the line that was begun is ended"),
            (10, true, "ab\ncd\n", 0, "it is full"),
            (30, true, "a\n", 0, "it is more than full"),
            (0, true, "0123456789abc\nde\n", 14, "one line alone may be longer"),
            (0, true, "0123456789abcdef0123456789", 20, "but not more than twice as long"),
            (18, false, "abcdef\n", 2, "also when it came in parts"),
            (20, false, "abcdef\n", 0, "and no more"),
            (0, true, "", 0, "nothing"),
        ] {
            assert_eq!(cut_at(bytes, at_line_end, text, 10), expected, "{why}");
        }
    }

    #[test]
    fn the_line_that_was_begun_is_ended_first() {
        let at = |at_line_end| Filled { bytes: 5, at_line_end };
        assert_eq!(line_end(at(true), b"ab\ncd\n"), 0);
        assert_eq!(line_end(at(false), b"ab\ncd\n"), 3);
        assert_eq!(line_end(at(false), b"abcd"), 4);
    }

    #[test]
    fn a_line_is_begun_anew_from_its_start() {
        assert_eq!(line_start(b"ab\ncd\n", 0), 0);
        assert_eq!(line_start(b"ab\ncd\n", 2), 0);
        assert_eq!(line_start(b"ab\ncd\n", 3), 3);
        assert_eq!(line_start(b"ab\ncd\n", 5), 3);
    }

    #[test]
    fn intervals_are_those_of_the_clock() {
        let hour = Duration::from_hours(1);
        let us = |seconds: u64| seconds * 1_000_000;
        assert!(!is_old(us(3600), us(7199), hour));
        assert!(is_old(us(3600), us(7200), hour));
        assert!(is_old(us(7199), us(7200), hour));
        assert!(is_old(us(0), us(720_000), hour));
        assert!(!is_old(us(7200), us(7199), hour), "the clock was set back");
        assert_eq!(until_next(us(7199), hour), Duration::from_secs(1));
        assert_eq!(until_next(us(7200), hour), hour);
    }

    #[test]
    fn the_oldest_go_by_number_by_bytes_and_by_age() {
        let closed = [(10, 5), (20, 5), (30, 50), (40, 5)];
        let kept = closed.map(|(seconds, bytes)| Kept { at_us: seconds * 1_000_000, bytes });
        let removed = |keep: Keep| to_remove(kept.into_iter(), &keep, 10, 45_000_000);
        let nothing = Keep { files_max: None, bytes_max: None, age_max: None };
        assert_eq!(removed(nothing.clone()), 0);
        assert_eq!(removed(Keep { files_max: Some(3), ..nothing.clone() }), 1);
        assert_eq!(removed(Keep { files_max: Some(0), ..nothing.clone() }), 4);
        assert_eq!(removed(Keep { bytes_max: Some(75), ..nothing.clone() }), 0);
        assert_eq!(removed(Keep { bytes_max: Some(74), ..nothing.clone() }), 1);
        assert_eq!(
            removed(Keep { bytes_max: Some(30), ..nothing.clone() }),
            3,
            "not the 20 beside"
        );
        let age_max = Some(Duration::from_secs(25));
        assert_eq!(removed(Keep { age_max, ..nothing.clone() }), 1);
        assert_eq!(removed(Keep { files_max: Some(3), age_max, bytes_max: Some(15) }), 3);
    }

    proptest! {
        #[test]
        fn cutting_goes_on_and_never_cuts_a_line_that_could_stay_whole(
            bytes in 0_u64..60, ended: bool, text in "[a\n]{1,80}", bytes_max in 1_u64..30,
        ) {
            let at_line_end = ended || bytes == 0;
            let file = Filled { bytes, at_line_end };
            let cut = cut(file, text.as_bytes(), bytes_max);
            prop_assert!(cut <= text.len());
            prop_assert!(cut > 0 || bytes > 0, "an empty file takes something");
            let left = bytes + cut as u64;
            prop_assert!(left <= bytes.max(2 * bytes_max), "{left}");
            if cut < text.len() {
                let whole = if cut == 0 { at_line_end } else { text.as_bytes()[cut - 1] == b'\n' };
                prop_assert!(whole || left >= 2 * bytes_max, "cut in a line at {left}");
            }
            if cut > 0 && left > bytes_max {
                let in_one_line = !text[..cut - 1].contains('\n');
                prop_assert!(in_one_line && (bytes == 0 || !at_line_end), "it is longer for one line");
            }
        }
    }
}
