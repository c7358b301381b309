//! Decides where a file ends by its length (rotation), and which closed files have expired
//! (retention). Performs no I/O.

use std::time::Duration;

use crate::options::Retention;

/// The state at the end of the file being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileEnd {
    /// The length of the file in bytes.
    pub(crate) bytes: u64,
    /// `true` if the file ends with a complete line or is empty.
    pub(crate) at_line_end: bool,
}

/// Returns the number of `bytes` to be written to this file before it is closed: all of them, or
/// the bytes up to the end of a line.
///
/// A line is kept in one file as long as the file stays below twice its maximum length. A longer
/// line is split; the concatenated files contain it unchanged.
pub(crate) fn cut(file: FileEnd, bytes: &[u8], bytes_max: u64) -> usize {
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

/// Returns the number of `bytes` that belong to the incomplete line at the end of the file.
pub(crate) fn line_end(file: FileEnd, bytes: &[u8]) -> usize {
    if file.at_line_end {
        return 0;
    }
    memchr::memchr(b'\n', bytes).map_or(bytes.len(), |first| first + 1)
}

/// Returns the index at which the line that contains index `done` begins.
pub(crate) fn line_start(bytes: &[u8], done: usize) -> usize {
    memchr::memrchr(b'\n', &bytes[..done]).map_or(0, |last| last + 1)
}

/// The properties of a closed file that determine its retention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClosedFile {
    /// The time at which the file was closed, in microseconds since the Unix epoch.
    pub(crate) at_us: u64,
    /// The length of the file in bytes.
    pub(crate) bytes: u64,
}

/// Returns the number of closed files, given from the oldest to the newest, that have expired.
/// `current_bytes` is the maximum length of the current file, or 0 if there is no maximum.
pub(crate) fn expired_count(
    closed: impl DoubleEndedIterator<Item = ClosedFile> + ExactSizeIterator,
    keep: &Retention,
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
        cut(FileEnd { bytes, at_line_end }, text.as_bytes(), bytes_max)
    }

    #[test]
    fn files_end_at_line_ends() {
        for (bytes, at_line_end, text, expected, why) in [
            (0, true, "ab\ncd\n", 6, "all fits"),
            (4, true, "ab\ncd\n", 6, "fits exactly"),
            (5, true, "ab\ncd\n", 3, "one line fits"),
            (8, true, "ab\ncd\n", 0, "no line fits"),
            (8, false, "ab\ncd\n", 3, "the incomplete line is completed"),
            (10, true, "ab\ncd\n", 0, "the file is full"),
            (30, true, "a\n", 0, "the file is longer than the maximum"),
            (0, true, "0123456789abc\nde\n", 14, "a single line may exceed the maximum"),
            (0, true, "0123456789abcdef0123456789", 20, "at most twice the maximum"),
            (18, false, "abcdef\n", 2, "at most twice the maximum, appended in parts"),
            (20, false, "abcdef\n", 0, "twice the maximum is reached"),
            (0, true, "", 0, "empty input"),
        ] {
            assert_eq!(cut_at(bytes, at_line_end, text, 10), expected, "{why}");
        }
    }

    #[test]
    fn line_end_completes_an_incomplete_line() {
        let at = |at_line_end| FileEnd { bytes: 5, at_line_end };
        assert_eq!(line_end(at(true), b"ab\ncd\n"), 0);
        assert_eq!(line_end(at(false), b"ab\ncd\n"), 3);
        assert_eq!(line_end(at(false), b"abcd"), 4);
    }

    #[test]
    fn line_start_is_after_the_previous_newline() {
        assert_eq!(line_start(b"ab\ncd\n", 0), 0);
        assert_eq!(line_start(b"ab\ncd\n", 2), 0);
        assert_eq!(line_start(b"ab\ncd\n", 3), 3);
        assert_eq!(line_start(b"ab\ncd\n", 5), 3);
    }

    #[test]
    fn oldest_files_expire_by_count_bytes_and_age() {
        let closed = [(10, 5), (20, 5), (30, 50), (40, 5)];
        let kept = closed.map(|(seconds, bytes)| ClosedFile { at_us: seconds * 1_000_000, bytes });
        let removed = |keep: Retention| expired_count(kept.into_iter(), &keep, 10, 45_000_000);
        let unlimited = Retention { files_max: None, bytes_max: None, age_max: None };
        assert_eq!(removed(unlimited.clone()), 0);
        assert_eq!(removed(Retention { files_max: Some(3), ..unlimited.clone() }), 1);
        assert_eq!(removed(Retention { files_max: Some(0), ..unlimited.clone() }), 4);
        assert_eq!(removed(Retention { bytes_max: Some(75), ..unlimited.clone() }), 0);
        assert_eq!(removed(Retention { bytes_max: Some(74), ..unlimited.clone() }), 1);
        assert_eq!(
            removed(Retention { bytes_max: Some(30), ..unlimited.clone() }),
            3,
            "an old file that would still fit expires, too"
        );
        let age_max = Some(Duration::from_secs(25));
        assert_eq!(removed(Retention { age_max, ..unlimited.clone() }), 1);
        assert_eq!(removed(Retention { files_max: Some(3), age_max, bytes_max: Some(15) }), 3);
    }

    proptest! {
        #[test]
        fn cut_makes_progress_and_splits_only_lines_longer_than_two_files(
            bytes in 0_u64..60, ended: bool, text in "[a\n]{1,80}", bytes_max in 1_u64..30,
        ) {
            let at_line_end = ended || bytes == 0;
            let file = FileEnd { bytes, at_line_end };
            let cut = cut(file, text.as_bytes(), bytes_max);
            prop_assert!(cut <= text.len());
            prop_assert!(cut > 0 || bytes > 0, "no progress in an empty file");
            let left = bytes + cut as u64;
            prop_assert!(left <= bytes.max(2 * bytes_max), "{left}");
            if cut < text.len() {
                let whole = if cut == 0 { at_line_end } else { text.as_bytes()[cut - 1] == b'\n' };
                prop_assert!(whole || left >= 2 * bytes_max, "line split at {left}");
            }
            if cut > 0 && left > bytes_max {
                let in_one_line = !text[..cut - 1].contains('\n');
                prop_assert!(in_one_line && (bytes == 0 || !at_line_end), "too long for one line");
            }
        }
    }
}
