//! Formats and parses the file names of a log.

use haul_disk::Open;

use crate::calendar::Utc;

/// The name of the file to which lines are written.
pub const CURRENT: &str = "current";

const SYNCED: &str = ".log";
const UNSYNCED: &str = ".unsynced";
const COMPRESSED: &str = ".zst";
const TEMPORARY: &str = ".tmp";

/// The options with which a closed file is opened.
pub(crate) const READ_ONLY: Open =
    Open { direct: false, dsync: false, random: false, read_only: true };

/// The information in the name of a closed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// The time at which the file was closed, in microseconds since the Unix epoch.
    pub(crate) at_us: u64,
    /// `true` if no sync of the file failed.
    pub(crate) is_synced: bool,
    /// `true` if the bytes of the file are compressed.
    pub(crate) is_compressed: bool,
}

/// A parsed file name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// The file to which lines are written.
    Current,
    /// A closed file.
    Closed(Stamp),
    /// A compressed file that is not complete.
    Temporary,
    /// A file that does not belong to the log.
    Other,
}

/// Formats the name of a closed file, such as `20261121T072314.500000Z.log`. Names sort by closing
/// time.
pub(crate) fn closed(stamp: Stamp) -> String {
    let Utc { year, month, day, hour, minute, second, microsecond } = Utc::from_micros(stamp.at_us);
    let end = if stamp.is_synced { SYNCED } else { UNSYNCED };
    let compressed = if stamp.is_compressed { COMPRESSED } else { "" };
    let time = format!("{hour:02}{minute:02}{second:02}.{microsecond:06}Z");
    format!("{year:04}{month:02}{day:02}T{time}{end}{compressed}")
}

/// Formats the name of the file to which a closed file is compressed before it is complete.
pub(crate) fn temporary(stamp: Stamp) -> String {
    closed(Stamp { is_compressed: true, ..stamp }) + TEMPORARY
}

/// Returns the closing time for the name of a file that is closed now. It is later than
/// `newest_us`, the time in the newest name, even if the clock was set back.
pub(crate) fn next_us(now_us: u64, newest_us: Option<u64>) -> u64 {
    newest_us.map_or(now_us, |newest_us| now_us.max(newest_us + 1))
}

/// Parses the name of a file in the directory of a log.
pub(crate) fn parse(name: &str) -> Name {
    if name == CURRENT {
        return Name::Current;
    }
    let (name, is_temporary) = without(name, TEMPORARY);
    let (name, is_compressed) = without(name, COMPRESSED);
    let (time, is_synced) = without(name, SYNCED);
    let (time, is_unsynced) = if is_synced { (time, true) } else { without(time, UNSYNCED) };
    match time_us(time) {
        Some(at_us) if is_synced || is_unsynced => match (is_temporary, is_compressed) {
            (true, true) => Name::Temporary,
            (true, false) => Name::Other,
            (false, _) => Name::Closed(Stamp { at_us, is_synced, is_compressed }),
        },
        _ => Name::Other,
    }
}

/// Removes the suffix `end`; the second result is `true` if `name` had it.
fn without<'a>(name: &'a str, end: &str) -> (&'a str, bool) {
    name.strip_suffix(end).map_or((name, false), |name| (name, true))
}

fn time_us(text: &str) -> Option<u64> {
    let is_mark = |at: usize, mark: u8| text.as_bytes().get(at) == Some(&mark);
    if text.len() != 23 || !(is_mark(8, b'T') && is_mark(15, b'.') && is_mark(22, b'Z')) {
        return None;
    }
    let number = |range: std::ops::Range<usize>| -> Option<u64> {
        let digits = text.get(range)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let utc = Utc {
        year: number(0..4)?,
        month: number(4..6)?,
        day: number(6..8)?,
        hour: number(9..11)?,
        minute: number(11..13)?,
        second: number(13..15)?,
        microsecond: number(16..22)?,
    };
    utc.to_micros()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_contain_the_closing_time() {
        let at_us = 1_795_245_794_500_000;
        let stamp = Stamp { at_us, is_synced: true, is_compressed: false };
        assert_eq!(closed(stamp), "20261121T072314.500000Z.log");
        let unsynced = Stamp { is_synced: false, ..stamp };
        assert_eq!(closed(unsynced), "20261121T072314.500000Z.unsynced");
        let compressed = Stamp { is_compressed: true, ..stamp };
        assert_eq!(closed(compressed), "20261121T072314.500000Z.log.zst");
        assert_eq!(temporary(stamp), "20261121T072314.500000Z.log.zst.tmp");
        assert_eq!(parse(&temporary(unsynced)), Name::Temporary);
        assert_eq!(parse(CURRENT), Name::Current);
    }

    #[test]
    fn unrelated_names_are_ignored() {
        for other in [
            "",
            "LOCK",
            ".log",
            "current.log",
            "20261121T072314.500000Z",
            "20261121T072314.500000Z.zst",
            "20261121T072314.500000Z.log.gz",
            "20261121T072314.500000Z.log.tmp",
            "20261121T072314.500000Z.log.zst.zst",
            "20261121T072314.500000Z.log.unsynced",
            "20261131T072314.500000Z.log",
            "+0261121T072314.500000Z.log",
            "20261121 072314.500000Z.log",
            "20261121T072314.5000000Z.log",
            "2026112ÄT072314.500000Z.log",
        ] {
            assert_eq!(parse(other), Name::Other, "{other}");
        }
    }

    #[test]
    fn names_stay_increasing_if_the_clock_goes_back() {
        assert_eq!(next_us(10, None), 10);
        assert_eq!(next_us(10, Some(9)), 10);
        assert_eq!(next_us(10, Some(10)), 11);
        assert_eq!(next_us(10, Some(500)), 501);
    }

    proptest! {
        #[test]
        fn names_round_trip_and_sort_by_time(
            at_us in 0_u64..253_402_300_799_000_000, more in 1_u64..100_000_000, is_synced: bool,
            is_compressed: bool,
        ) {
            let stamp = Stamp { at_us, is_synced, is_compressed };
            let name = closed(stamp);
            prop_assert_eq!(parse(&name), Name::Closed(stamp));
            let later = Stamp { at_us: at_us + more, is_synced: !is_synced, is_compressed: true };
            let later = closed(later);
            prop_assert!(later > name);
        }

        #[test]
        fn parsing_never_panics(name in "\\PC{0,40}") {
            parse(&name);
        }
    }
}
