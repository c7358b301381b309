//! Times in S3's formats, which end with the year 9999.

use std::time::SystemTime;

use haul_http1::Date;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::{OffsetDateTime, PrimitiveDateTime, UtcOffset};

/// Returns the present time, in seconds since 1970.
pub(crate) fn now_s() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// Formats a time for documents, in whole seconds: `2026-11-28T12:00:00.000Z`. A time that is too
/// late for this format becomes its greatest time.
pub(crate) fn document_time(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let last = PrimitiveDateTime::MAX.assume_utc();
    let since = time::Duration::try_from(since).unwrap_or(time::Duration::MAX);
    let time = OffsetDateTime::UNIX_EPOCH.checked_add(since).unwrap_or(last);
    let form = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].000Z");
    time.format(form).unwrap_or_default()
}

/// Formats a time for headers: `Sat, 28 Nov 2026 12:00:00 GMT`.
pub(crate) fn header_time(time: SystemTime) -> String {
    String::from_utf8_lossy(Date::of(time).as_bytes()).into_owned()
}

/// Parses an RFC 3339 timestamp, as in S3 XML and some headers, and converts it to UTC; `None` if
/// it is malformed, or too late in UTC.
pub(crate) fn parse_time(text: &str) -> Option<OffsetDateTime> {
    let time = OffsetDateTime::parse(text.trim(), &Rfc3339).ok()?;
    time.checked_to_offset(UtcOffset::UTC)
}

/// Parses an HTTP date or an RFC 3339 timestamp.
pub(crate) fn parse_any(text: &str) -> Option<OffsetDateTime> {
    let in_header = haul_http1::parse_date(text.as_bytes()).map(OffsetDateTime::from);
    in_header.or_else(|| parse_time(text))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_after_the_last_year_are_its_end() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(document_time(at(1)), "1970-01-01T00:00:01.000Z");
        let fraction = at(1) + Duration::from_millis(999);
        assert_eq!(document_time(fraction), "1970-01-01T00:00:01.000Z");
        for seconds in [253_402_300_800, 1 << 50, i64::MAX as u64] {
            assert_eq!(document_time(at(seconds)), "9999-12-31T23:59:59.000Z");
        }
        assert_eq!(header_time(at(1)), "Thu, 01 Jan 1970 00:00:01 GMT");
    }

    #[test]
    fn times_are_parsed_in_utc() {
        let seconds = |text| parse_any(text).map(OffsetDateTime::unix_timestamp);
        for text in [
            "1970-01-01T00:01:00Z",
            "1970-01-01T00:01:00.000Z",
            "1970-01-01T01:01:00+01:00",
            "Thu, 01 Jan 1970 00:01:00 GMT",
        ] {
            assert_eq!(seconds(text), Some(60), "{text}");
        }
        assert!(parse_time("9999-12-31T23:59:59-01:00").is_none());
        assert!(parse_time("9999-12-31T23:59:59+01:00").is_some());
        assert_eq!(seconds("yesterday"), None);
    }
}
