//! Formats and parses a log's file names.

const SEGMENT: &str = ".segment";
const UNFINISHED: &str = ".new";
const SPARE: &str = ".spare";

/// The file that a log creates when a write or sync has failed. If it exists, the next opening
/// continues the log in a new segment.
pub(crate) const LATCHED: &str = "LATCHED";

/// Returns the file name of segment `number`. The number has ten digits, so that names sort by
/// number.
#[must_use]
pub fn segment(number: u32) -> String {
    format!("{number:010}{SEGMENT}")
}

/// `true` if a file with this name in a log directory is a segment.
#[must_use]
pub fn is_segment(name: &str) -> bool {
    matches!(parse(name), Name::Segment(_))
}

/// Returns the file name of segment `number` while its file is being created.
pub(crate) fn unfinished(number: u32) -> String {
    format!("{number:010}{SEGMENT}{UNFINISHED}")
}

/// The number in the short reserved segment's file name. This segment is used only on a full disk.
pub(crate) const RESERVE: u32 = 0;

/// Returns the name of a spare file: a removed segment's file, to be recycled, or a file created in
/// advance for a full disk. Its content is ignored.
pub(crate) fn spare(number: u32) -> String {
    format!("{number:010}{SPARE}")
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// This segment's file.
    Segment(u32),
    /// The file of a segment whose creation was interrupted. Recovery removes it.
    Unfinished,
    /// A spare file with this number.
    Spare(u32),
    /// The marker file [`LATCHED`].
    Latched,
    /// A file that does not belong to the log.
    Other,
}

/// Parses the name of a file in a log directory.
pub(crate) fn parse(name: &str) -> Name {
    if name == LATCHED {
        return Name::Latched;
    }
    let Some((digits, suffix)) = name.split_at_checked(10) else { return Name::Other };
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let Some(number) = digits.parse().ok().filter(|_| is_number) else { return Name::Other };
    match (suffix, suffix.strip_suffix(UNFINISHED)) {
        (SEGMENT, _) => Name::Segment(number),
        (_, Some(SEGMENT)) => Name::Unfinished,
        (SPARE, _) => Name::Spare(number),
        _ => Name::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for number in [1, 42, u32::MAX] {
            assert_eq!(parse(&segment(number)), Name::Segment(number));
            assert_eq!(parse(&unfinished(number)), Name::Unfinished);
            assert_eq!(parse(&spare(number)), Name::Spare(number));
        }
        for other in
            ["", "LOCK", "1.segment", "+000000001.segment", "9999999999.segment", "ääääääää"]
        {
            assert_eq!(parse(other), Name::Other, "{other}");
        }
    }
}
