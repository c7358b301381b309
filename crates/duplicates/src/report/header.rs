//! Defines the header of a report, and parses and formats its timestamp.

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

/// A point in time, in nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

impl Timestamp {
    fn utc(self) -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0))
            .unwrap_or(OffsetDateTime::UNIX_EPOCH)
            .to_offset(UtcOffset::UTC)
    }

    /// Formats the timestamp for JSON, as in RFC 3339.
    pub(super) fn rfc3339(self) -> String {
        self.utc().format(&Rfc3339).unwrap_or_default()
    }

    /// Parses a timestamp in the format of a report or of RFC 3339, or a UTC date with an optional
    /// time of day.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let rfc3339 = || OffsetDateTime::parse(text, &Rfc3339).ok();
        let report = || OffsetDateTime::parse(text, &TEXT).ok();
        let utc = |rest: &str| {
            let text = format!("{}{rest}", text.replacen(' ', "T", 1));
            OffsetDateTime::parse(&text, &Rfc3339).ok()
        };
        let timestamp = rfc3339()
            .or_else(report)
            .or_else(|| utc(""))
            .or_else(|| utc("Z"))
            .or_else(|| utc(":00Z"))
            .or_else(|| utc("T00:00:00Z"))?;
        i64::try_from(timestamp.unix_timestamp_nanos()).ok().map(Self)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.utc().format(&TEXT).unwrap_or_default())
    }
}

/// The statistics of a report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// The number of groups.
    pub groups: u64,
    /// The number of files in the groups.
    pub files: u64,
    /// The total length of the files in the groups, in bytes.
    pub bytes: u64,
    /// The number of files in excess of the allowed number of replicas.
    pub redundant_files: u64,
    /// The total length of the redundant files, in bytes.
    pub redundant_bytes: u64,
    /// The number of replicas that would have to be added to reach the required number.
    pub missing_files: u64,
    /// The total length of the missing replicas, in bytes.
    pub missing_bytes: u64,
    /// The number of files searched.
    pub scanned_files: u64,
    /// The total length of the files searched, in bytes.
    pub scanned_bytes: u64,
}

/// The header of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The program and its version, such as `haul 0.1.0`.
    pub program: String,
    /// The start of the search. A file that changed later may no longer have the content that was
    /// compared.
    pub timestamp: Timestamp,
    /// The command that created the report, as words.
    pub command: Vec<OsString>,
    /// The base directory of relative paths in the command.
    pub base: PathBuf,
    /// The statistics.
    pub stats: Stats,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_parse_in_all_supported_formats() {
        let timestamp = Timestamp(1_795_275_724_061_000_000);
        assert_eq!(timestamp.to_string(), "2026-11-21 15:42:04.061 +0000");
        assert_eq!(timestamp.rfc3339(), "2026-11-21T15:42:04.061Z");
        for (text, ns) in [
            ("2026-11-21 15:42:04.061 +0000", timestamp.0),
            ("2026-11-21T16:42:04.061+01:00", timestamp.0),
            ("2026-11-21 16:42:04.061 +0100", timestamp.0),
            ("2026-11-21 15:42:04.061", timestamp.0),
            ("2026-11-21 15:42", 1_795_275_720_000_000_000),
            ("2026-11-21", 1_795_219_200_000_000_000),
            ("1970-01-01", 0),
        ] {
            assert_eq!(Timestamp::parse(text), Some(Timestamp(ns)), "{text}");
        }
        for text in ["", "yesterday", "2026-13-01", "2026-11-21 25:00", "12:00"] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }
}
