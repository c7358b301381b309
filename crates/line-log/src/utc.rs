//! Moments as the calendar has them. Pure.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY_SECONDS: u64 = 24 * 60 * 60;
/// Days from the first of March of the year 0 to the first of January 1970.
const DAYS_TO_1970: u64 = 719_468;
/// Days of 400 years, after which the calendar repeats.
const ERA_DAYS: u64 = 146_097;

/// A moment in UTC, without leap seconds. Printed as RFC 3339 has it, with as many digits of the
/// second as asked for, three or six.
///
/// ```
/// # use std::time::{Duration, UNIX_EPOCH};
/// let utc = haul_line_log::Utc::of(UNIX_EPOCH + Duration::from_millis(951_782_400_500));
/// assert_eq!(format!("{utc:.3}"), "2000-02-29T00:00:00.500Z");
/// assert_eq!(format!("{utc}"), "2000-02-29T00:00:00.500000Z");
/// ```
///
/// # Source
/// \[Hinnant21\]: years that begin in March have their leap day at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Utc {
    pub year: u64,
    pub month: u64,
    pub day: u64,
    pub hour: u64,
    pub minute: u64,
    pub second: u64,
    pub microsecond: u64,
}

/// Microseconds since 1970; times before it are its first moment.
pub(crate) fn micros(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

impl Utc {
    /// The moment `time`; times before 1970 are told as its first moment.
    #[must_use]
    pub fn of(time: SystemTime) -> Self {
        Self::of_micros(micros(time))
    }

    pub(crate) fn of_micros(micros: u64) -> Self {
        let (seconds, microsecond) = (micros / 1_000_000, micros % 1_000_000);
        let (days, of_day) = (seconds / DAY_SECONDS + DAYS_TO_1970, seconds % DAY_SECONDS);
        let (era, of_era) = (days / ERA_DAYS, days % ERA_DAYS);
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * of_year + 2) / 153;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        Self {
            year: era * 400 + year_of_era + u64::from(month <= 2),
            month,
            day: of_year - (153 * from_march + 2) / 5 + 1,
            hour: of_day / 3600,
            minute: of_day / 60 % 60,
            second: of_day % 60,
            microsecond,
        }
    }

    /// Microseconds since 1970, if there is such a moment.
    pub(crate) fn to_micros(self) -> Option<u64> {
        let Self { year, month, day, hour, minute, second, microsecond } = self;
        if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || day == 0 {
            return None;
        }
        let (shifted, from_march) =
            if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let (era, year_of_era) = (shifted / 400, shifted % 400);
        let of_year = (153 * from_march + 2) / 5 + day - 1;
        let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
        let days = (era * ERA_DAYS + of_era).checked_sub(DAYS_TO_1970)?;
        let seconds = days * DAY_SECONDS + hour * 3600 + minute * 60 + second;
        let micros = seconds * 1_000_000 + microsecond;
        // What is no date, such as the 31st of April, reads back as another one.
        (Self::of_micros(micros) == self).then_some(micros)
    }

    /// The moment as the clock has it.
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
    fn times_are_told_as_the_calendar_has_them() {
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
    }

    #[test]
    fn what_is_no_date_is_no_moment() {
        let date = |year, month, day| Utc { year, month, day, ..Utc::of_micros(0) };
        for wrong in [date(2026, 2, 29), date(2026, 4, 31), date(2026, 13, 1), date(1969, 1, 1)] {
            assert_eq!(wrong.to_micros(), None, "{wrong}");
        }
        assert!(date(2024, 2, 29).to_micros().is_some());
        assert_eq!(Utc { hour: 24, ..date(2026, 1, 1) }.to_micros(), None);
    }

    proptest! {
        #[test]
        fn a_moment_reads_back_and_later_ones_are_greater(
            micros in 0_u64..253_402_300_799_000_000, more in 1_u64..10_000_000_000,
        ) {
            let utc = Utc::of_micros(micros);
            prop_assert_eq!(utc.to_micros(), Some(micros));
            prop_assert!(Utc::of_micros(micros + more) > utc);
        }
    }
}
