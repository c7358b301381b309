//! Converts between times and UTC calendar dates.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use time::{Date, Month, Time, UtcDateTime};

/// A date and time in UTC, without leap seconds. It is displayed as in RFC 3339. The precision of
/// the format selects the number of fractional digits: zero, three or six (default).
///
/// ```
/// # use std::time::{Duration, UNIX_EPOCH};
/// let utc = haul_line_log::Utc::of(UNIX_EPOCH + Duration::from_millis(951_782_400_500));
/// assert_eq!(format!("{utc:.3}"), "2000-02-29T00:00:00.500Z");
/// assert_eq!(format!("{utc}"), "2000-02-29T00:00:00.500000Z");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub struct Utc {
    pub year: u64,
    pub month: u64,
    pub day: u64,
    pub hour: u64,
    pub minute: u64,
    pub second: u64,
    pub microsecond: u64,
}

/// Returns the time in microseconds since the Unix epoch; 0 for earlier times.
pub(crate) fn micros(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

impl Utc {
    /// Converts `time`, clamped to the years 1970 to 9999.
    #[must_use]
    pub fn of(time: SystemTime) -> Self {
        Self::from_micros(micros(time))
    }

    pub(crate) fn from_micros(micros: u64) -> Self {
        let since = time::Duration::microseconds(i64::try_from(micros).unwrap_or(i64::MAX));
        let utc = UtcDateTime::UNIX_EPOCH.saturating_add(since);
        Self {
            year: utc.year().unsigned_abs().into(),
            month: u8::from(utc.month()).into(),
            day: utc.day().into(),
            hour: utc.hour().into(),
            minute: utc.minute().into(),
            second: utc.second().into(),
            microsecond: utc.microsecond().into(),
        }
    }

    /// Parses the format `2026-11-21T07:23:14.500000Z`; `None` for any other. The date may not
    /// exist.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        const MARKS: [(usize, u8); 7] =
            [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (26, b'Z')];
        let bytes = text.as_bytes();
        if text.len() != 27 || MARKS.iter().any(|(at, mark)| bytes[*at] != *mark) {
            return None;
        }
        let number = |range: std::ops::Range<usize>| -> Option<u64> {
            let digits = text.get(range)?;
            digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
        };
        Some(Self {
            year: number(0..4)?,
            month: number(5..7)?,
            day: number(8..10)?,
            hour: number(11..13)?,
            minute: number(14..16)?,
            second: number(17..19)?,
            microsecond: number(20..26)?,
        })
    }

    /// Returns the time in microseconds since the Unix epoch; `None` if the date does not exist or
    /// is earlier.
    pub(crate) fn to_micros(self) -> Option<u64> {
        let small = |number: u64| u8::try_from(number).ok();
        let month = Month::try_from(small(self.month)?).ok()?;
        let year = i32::try_from(self.year).ok()?;
        let date = Date::from_calendar_date(year, month, small(self.day)?).ok()?;
        let (hour, minute, second) = (small(self.hour)?, small(self.minute)?, small(self.second)?);
        let microsecond = u32::try_from(self.microsecond).ok()?;
        let time = Time::from_hms_micro(hour, minute, second, microsecond).ok()?;
        u64::try_from(UtcDateTime::new(date, time).unix_timestamp_nanos() / 1000).ok()
    }

    /// Converts to a [`SystemTime`]; `None` if the date does not exist or is before the Unix epoch.
    #[must_use]
    pub fn time(self) -> Option<SystemTime> {
        self.to_micros().map(|micros| UNIX_EPOCH + Duration::from_micros(micros))
    }
}

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { year, month, day, hour, minute, second, microsecond } = self;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        match f.precision() {
            Some(0) => f.write_str("Z"),
            Some(1..=3) => write!(f, ".{:03}Z", microsecond / 1000),
            _ => write!(f, ".{microsecond:06}Z"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_displayed_as_rfc_3339() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (68_255_999_999, "1972-02-29T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_200_001, "2024-03-01T00:00:00.001Z"),
            (1_767_225_599_000, "2025-12-31T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            let utc = Utc::of(UNIX_EPOCH + Duration::from_millis(millis));
            assert_eq!(format!("{utc:.3}"), text);
        }
        assert_eq!(Utc::of(UNIX_EPOCH - Duration::from_secs(1)).year, 1970);
        let last = Utc::from_micros(u64::MAX);
        assert_eq!(format!("{last}"), "9999-12-31T23:59:59.999999Z");
    }

    #[test]
    fn invalid_dates_are_refused() {
        let date = |year, month, day| Utc { year, month, day, ..Utc::from_micros(0) };
        for wrong in [date(2026, 2, 29), date(2026, 4, 31), date(2026, 13, 1), date(1969, 1, 1)] {
            assert_eq!(wrong.to_micros(), None, "{wrong}");
        }
        assert!(date(2024, 2, 29).to_micros().is_some());
        assert_eq!(Utc { hour: 24, ..date(2026, 1, 1) }.to_micros(), None);
    }

    proptest! {
        #[test]
        fn dates_round_trip_and_sort_by_time(
            micros in 0_u64..253_402_300_799_000_000, more in 1_u64..10_000_000_000,
        ) {
            let utc = Utc::from_micros(micros);
            prop_assert_eq!(utc.to_micros(), Some(micros));
            prop_assert!(Utc::from_micros(micros + more) > utc);
        }
    }
}
