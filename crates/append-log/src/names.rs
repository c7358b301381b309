//! Every file name of a log is made and read here.

const SEGMENT: &str = ".segment";
const UNFINISHED: &str = ".new";
const SPARE: &str = ".spare";

/// Left by a log whose write or sync failed: the next opening begins another segment.
pub(crate) const LATCHED: &str = "LATCHED";

/// The name of a segment: ten digits, so that names sort as numbers do.
#[must_use]
pub fn segment(number: u32) -> String {
    format!("{number:010}{SEGMENT}")
}

/// The name a segment has until it is ready.
pub(crate) fn unfinished(number: u32) -> String {
    format!("{number:010}{SEGMENT}{UNFINISHED}")
}

/// The number in the name of the spare file that only a full disk falls back on.
pub(crate) const RESERVE: u32 = 0;

/// The name of a file that was a segment and will be one again. Nothing in it counts.
pub(crate) fn spare(number: u32) -> String {
    format!("{number:010}{SPARE}")
}

/// What a name says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// A segment of this number.
    Segment(u32),
    /// A segment that never became ready: to be removed.
    Unfinished,
    /// A file to be used again, once segment of this number.
    Spare(u32),
    /// The mark of a failed write or sync.
    Latched,
    /// Not ours.
    Other,
}

/// Reads a name.
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
    fn names_read_back_as_they_were_made() {
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
