//! Formats and parses HTTP dates (RFC 9110, section 5.6.7).

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use time::parsing::Parsed;
use time::{Time, UtcDateTime};

/// The preferred format, `Sun, 06 Nov 1994 08:49:37 GMT`, 29 bytes.
const IMF_FIXDATE: &[BorrowedFormatItem<'_>] = format_description!(
    "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
);
/// The preferred format with a day of one digit, as old clients write it, 28 or 29 bytes.
const SHORT_DAY: &[BorrowedFormatItem<'_>] = format_description!(
    "[weekday repr:short], [day padding:none] [month repr:short] [year] [hour]:[minute]:[second] GMT"
);
/// The obsolete format `Sunday, 06-Nov-94 08:49:37 GMT`, 30 to 33 bytes.
const RFC_850: &[BorrowedFormatItem<'_>] = format_description!(
    "[weekday], [day]-[month repr:short]-[year repr:last_two] [hour]:[minute]:[second] GMT"
);
/// The obsolete format `Sun Nov  6 08:49:37 1994`, 24 bytes.
const ASCTIME: &[BorrowedFormatItem<'_>] = format_description!(
    "[weekday repr:short] [month repr:short] [day padding:space] [hour]:[minute]:[second] [year]"
);
/// The same with one blank before a day of one digit, 23 bytes.
const ASCTIME_SHORT_DAY: &[BorrowedFormatItem<'_>] = format_description!(
    "[weekday repr:short] [month repr:short] [day padding:none] [hour]:[minute]:[second] [year]"
);

/// A date in IMF-fixdate format: `Sun, 06 Nov 1994 08:49:37 GMT`.
///
/// A server can format one date per second and use it for all responses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Date([u8; 29]);

impl Date {
    /// Formats a time, to the second, clamped to the years 1970 to 9999.
    pub fn of(at: SystemTime) -> Self {
        let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let since = since.try_into().unwrap_or(time::Duration::MAX);
        let mut date = *b"Thu, 01 Jan 1970 00:00:00 GMT";
        // Formatting cannot fail: its result always has 29 bytes.
        let utc = UtcDateTime::UNIX_EPOCH.saturating_add(since);
        utc.format_into(&mut &mut date[..], IMF_FIXDATE).ok();
        Self(date)
    }

    /// Returns the formatted bytes.
    pub const fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

/// Parses a date in any of the three HTTP formats, in which the day may have one digit; returns
/// `None` if it is invalid.
pub fn parse_date(date: &[u8]) -> Option<SystemTime> {
    let date = date.trim_ascii();
    let format = match date.len() {
        23 => ASCTIME_SHORT_DAY,
        24 => ASCTIME,
        28 => SHORT_DAY,
        29 => IMF_FIXDATE,
        _ => RFC_850,
    };
    let mut parsed = Parsed::new();
    if !parsed.parse_items(date, format).ok()?.is_empty() {
        return None;
    }
    if let Some(year) = parsed.year_last_two() {
        parsed.set_year(i32::from(year) + if year < 70 { 2000 } else { 1900 })?;
    }
    let day = time::Date::try_from(parsed).ok()?;
    let is_valid = parsed.weekday() == Some(day.weekday());
    let time = Time::try_from(parsed).ok()?;
    is_valid.then(|| UtcDateTime::new(day, time).into())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The last second of the year 9999, after which a year has more than four digits.
    const LAST: Duration = Duration::from_secs(253_402_300_799);

    fn of(seconds: u64) -> String {
        format!("{:?}", Date::of(UNIX_EPOCH + Duration::from_secs(seconds)))
    }

    #[test]
    fn dates_round_trip_to_the_second() {
        assert_eq!(of(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        for date in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun Nov 6 08:49:37 1994",
        ] {
            let at = UNIX_EPOCH + Duration::from_secs(784_111_777);
            assert_eq!(parse_date(date.as_bytes()), Some(at), "{date}");
        }
        let leap_day = parse_date(b"Thursday, 29-Feb-24 23:59:59 GMT").unwrap();
        assert_eq!(format!("{:?}", Date::of(leap_day)), "Thu, 29 Feb 2024 23:59:59 GMT");
        assert_eq!(
            parse_date(b"Sun Nov 06 08:49:37 1994"),
            parse_date(b"Sun Nov  6 08:49:37 1994")
        );
        assert_eq!(parse_date(b"Thu, 01 Jan 1970 00:00:00 GMT"), Some(UNIX_EPOCH));
        assert!(parse_date(b"Fri, 31 Dec 9999 23:59:59 GMT").is_some());
        let day = Duration::from_hours(24);
        assert_eq!(parse_date(b"Wed, 31 Dec 1969 00:00:00 GMT"), UNIX_EPOCH.checked_sub(day));
        assert!(parse_date(b"Mon, 01 Jan 1900 00:00:00 GMT").is_some());
    }

    #[test]
    fn invalid_dates_are_refused() {
        for date in [
            "",
            "yesterday",
            "\u{ff}",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "sun, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 gmt",
            "Sun,  6 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov +994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:60 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Fri, 30 Feb 2024 00:00:00 GMT",
            "Sun, 6 Nov 199 08:49:37 GMT",
            "Sun, 06-Nov-94 08:49:37 GMT",
            "Sunday, 06-Nov-1994 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994 GMT",
        ] {
            assert_eq!(parse_date(date.as_bytes()), None, "{date}");
        }
    }

    #[test]
    fn times_out_of_range_are_clamped() {
        let day = Duration::from_hours(24);
        assert_eq!(Date::of(UNIX_EPOCH - day), Date::of(UNIX_EPOCH));
        let last = UNIX_EPOCH + LAST;
        assert_eq!(format!("{:?}", Date::of(last)), "Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(Date::of(last + day), Date::of(last));
        assert_eq!(Date::of(last + Duration::from_secs(1 << 62)), Date::of(last));
    }
}
