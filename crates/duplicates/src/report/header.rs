//! What stands above the groups.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use time::format_description::FormatItem;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::{OffsetDateTime, UtcOffset};

const TEXT: &[FormatItem<'_>] = format_description!(
    "[year]-[month]-[day] [hour]:[minute]:[second].[subsecond digits:3] \
     [offset_hour sign:mandatory][offset_minute]"
);

/// A moment, in nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub i64);

impl Moment {
    fn utc(self) -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0))
            .unwrap_or(OffsetDateTime::UNIX_EPOCH)
            .to_offset(UtcOffset::UTC)
    }

    /// As JSON tells it: RFC 3339.
    pub(super) fn rfc3339(self) -> String {
        self.utc().format(&Rfc3339).unwrap_or_default()
    }

    /// The moment `text` names: as a report has it, as RFC 3339 has it, or a day or a second of a
    /// day in UTC.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let rfc3339 = || OffsetDateTime::parse(text, &Rfc3339).ok();
        let report = || OffsetDateTime::parse(text, &TEXT).ok();
        let utc = |rest: &str| {
            let text = format!("{}{rest}", text.replacen(' ', "T", 1));
            OffsetDateTime::parse(&text, &Rfc3339).ok()
        };
        let moment = rfc3339()
            .or_else(report)
            .or_else(|| utc(""))
            .or_else(|| utc("Z"))
            .or_else(|| utc(":00Z"))
            .or_else(|| utc("T00:00:00Z"))?;
        i64::try_from(moment.unix_timestamp_nanos()).ok().map(Self)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.utc().format(&TEXT).unwrap_or_default())
    }
}

/// The sums of a report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// How many groups there are.
    pub groups: u64,
    /// How many files are in them, and their bytes.
    pub files: u64,
    /// The bytes of all of them.
    pub bytes: u64,
    /// How many of them are more than the search allows.
    pub redundant_files: u64,
    /// The bytes of those.
    pub redundant_bytes: u64,
    /// How many are missing to what the search wants.
    pub missing_files: u64,
    /// The bytes of those.
    pub missing_bytes: u64,
    /// How many files were looked at.
    pub scanned_files: u64,
    /// The bytes of those.
    pub scanned_bytes: u64,
}

/// What was asked, when, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The program and its version, such as `haul 0.1.0`.
    pub program: String,
    /// When the search began: what changed later is not what was compared.
    pub begun: Moment,
    /// The command that made the report.
    pub command: Vec<OsString>,
    /// The directory that relative paths of the command begin at.
    pub base: PathBuf,
    /// The sums.
    pub stats: Stats,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_as_they_are_written_and_as_people_write_them() {
        let moment = Moment(1_795_275_724_061_000_000);
        assert_eq!(moment.to_string(), "2026-11-21 15:42:04.061 +0000");
        assert_eq!(moment.rfc3339(), "2026-11-21T15:42:04.061Z");
        for (text, ns) in [
            ("2026-11-21 15:42:04.061 +0000", moment.0),
            ("2026-11-21T16:42:04.061+01:00", moment.0),
            ("2026-11-21 16:42:04.061 +0100", moment.0),
            ("2026-11-21 15:42:04.061", moment.0),
            ("2026-11-21 15:42", 1_795_275_720_000_000_000),
            ("2026-11-21", 1_795_219_200_000_000_000),
            ("1970-01-01", 0),
        ] {
            assert_eq!(Moment::parse(text), Some(Moment(ns)), "{text}");
        }
        for text in ["", "yesterday", "2026-13-01", "2026-11-21 25:00", "12:00"] {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
    }
}
