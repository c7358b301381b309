//! Converts the modification time of a file to and from an attribute of its object, in the format
//! of rclone. Performs no I/O.

use std::fmt;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use haul_file_store::Attributes;

/// The name of the attribute that holds the modification time. S3 clients see the attribute as the
/// user metadata `mtime`.
pub const MTIME_ATTRIBUTE: &str = "x-amz-meta-mtime";

const NANOS: i128 = 1_000_000_000;

/// The modification time of a file: nanoseconds since 1970, printed as decimal seconds such as
/// `1700000000.000000001`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mtime(i128);

impl Mtime {
    /// Creates a time from seconds, rounded down, and nanoseconds, as `stat(2)` returns them.
    pub(crate) fn new(seconds: i64, nanos: i64) -> Self {
        Self(i128::from(seconds) * NANOS + i128::from(nanos))
    }

    /// Returns seconds and nanoseconds for system calls; returns `None` if the time is out of
    /// range.
    pub(crate) fn parts(self) -> Option<(i64, i64)> {
        let seconds = i64::try_from(self.0.div_euclid(NANOS)).ok()?;
        Some((seconds, i64::try_from(self.0.rem_euclid(NANOS)).ok()?))
    }

    /// Returns the time stored with an object; returns `None` if there is none or it is invalid.
    #[must_use]
    pub fn from_attributes(attributes: &Attributes) -> Option<Self> {
        attributes.get(MTIME_ATTRIBUTE)?.parse().ok()
    }
}

impl From<&Metadata> for Mtime {
    fn from(status: &Metadata) -> Self {
        Self::new(status.mtime(), status.mtime_nsec())
    }
}

impl From<SystemTime> for Mtime {
    fn from(time: SystemTime) -> Self {
        let nanos = |nanos: u128| i128::try_from(nanos).unwrap_or(i128::MAX);
        match time.duration_since(UNIX_EPOCH) {
            Ok(since) => Self(nanos(since.as_nanos())),
            Err(before) => Self(-nanos(before.duration().as_nanos())),
        }
    }
}

impl fmt::Display for Mtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let (seconds, nanos) = (self.0.abs() / NANOS, self.0.abs() % NANOS);
        match nanos {
            0 => write!(f, "{sign}{seconds}"),
            _ => write!(f, "{sign}{seconds}.{}", format!("{nanos:09}").trim_end_matches('0')),
        }
    }
}

impl FromStr for Mtime {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const ERROR: &str = "not a number of seconds";
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        let (seconds, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let is_number = |part: &str| {
            (1..=18).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !is_number(seconds) || !is_number(fraction) {
            return Err(ERROR);
        }
        // Digits beyond nanoseconds are dropped.
        let nanos = format!("{:0<9.9}", fraction);
        let number = |part: &str| part.parse::<i128>().map_err(|_overflow| ERROR);
        let nanos = number(seconds)? * NANOS + number(&nanos)?;
        Ok(Self(if negative { -nanos } else { nanos }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_round_trip_through_text() {
        for ((seconds, nanos), text) in [
            ((0, 0), "0"),
            ((1_700_000_000, 0), "1700000000"),
            ((1_700_000_000, 1), "1700000000.000000001"),
            ((1_700_000_000, 120_000_000), "1700000000.12"),
            ((-1, 500_000_000), "-0.5"),
            ((-2, 0), "-2"),
        ] {
            let time = Mtime::new(seconds, nanos);
            assert_eq!(time.to_string(), text);
            assert_eq!(text.parse(), Ok(time));
            assert_eq!(time.parts(), Some((seconds, nanos)), "{text}");
        }
        assert_eq!("1.1234567899".parse(), Ok(Mtime::new(1, 123_456_789)));
    }

    #[test]
    fn invalid_times_are_rejected() {
        for text in ["", "-", ".", "1.", ".5", "1e9", "+1", "--1", "9999999999999999999"] {
            assert!(text.parse::<Mtime>().is_err(), "{text}");
        }
    }
}
