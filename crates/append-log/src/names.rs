//! Every file name of a log is made and read here.

const SEGMENT: &str = ".segment";
const UNFINISHED: &str = ".new";

/// The name of a segment: ten digits, so that names sort as numbers do.
#[must_use]
pub fn segment(number: u32) -> String {
    format!("{number:010}{SEGMENT}")
}

/// The name a segment has until it is ready.
pub(crate) fn unfinished(number: u32) -> String {
    format!("{number:010}{SEGMENT}{UNFINISHED}")
}

/// What a name says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// A segment of this number.
    Segment(u32),
    /// A segment that never became ready: to be removed.
    Unfinished,
    /// Not ours.
    Other,
}

/// Reads a name.
pub(crate) fn parse(name: &str) -> Name {
    let (name, finished) = match name.strip_suffix(UNFINISHED) {
        Some(rest) => (rest, false),
        None => (name, true),
    };
    let number = name
        .strip_suffix(SEGMENT)
        .filter(|digits| digits.len() == 10 && digits.bytes().all(|b| b.is_ascii_digit()))
        .and_then(|digits| digits.parse().ok());
    match number {
        Some(number) if finished => Name::Segment(number),
        Some(_) => Name::Unfinished,
        None => Name::Other,
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
        }
        for other in ["", "LOCK", "1.segment", "+000000001.segment", "9999999999.segment"] {
            assert_eq!(parse(other), Name::Other, "{other}");
        }
    }
}
