//! Formats times in UTC. Pure.

const DAY_SECONDS: u64 = 24 * 60 * 60;

/// The number of days in 400 years, after which the calendar repeats.
const CYCLE_DAYS: u64 = 146_097;

/// Formats a time in milliseconds since 1970, to the second: `2026-11-28T10:49:46Z`.
pub(super) fn format_utc(ms: u64) -> String {
    let seconds = ms / 1000;
    let (days, second) = (seconds / DAY_SECONDS, seconds % DAY_SECONDS);
    let (mut year, mut day) = (1970 + days / CYCLE_DAYS * 400, days % CYCLE_DAYS);
    let mut month = 1;
    while day >= month_days(year, month) {
        day -= month_days(year, month);
        (year, month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", day + 1)
}

fn month_days(year: u64, month: u64) -> u64 {
    let is_leap_year =
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if is_leap_year => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `date --utc` from GNU coreutils printed the expected dates.
    #[test]
    fn times_are_formatted_as_dates_in_utc() {
        for (ms, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (86_399_999, "1970-01-01T23:59:59Z"),
            (68_256_000_000, "1972-03-01T00:00:00Z"),
            (951_782_400_500, "2000-02-29T00:00:00Z"),
            (951_868_800_000, "2000-03-01T00:00:00Z"),
            (1_795_862_986_301, "2026-11-28T10:49:46Z"),
            (4_107_542_399_000, "2100-02-28T23:59:59Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
            (13_569_465_599_000, "2399-12-31T23:59:59Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(format_utc(ms), expected);
        }
    }

    #[test]
    fn greatest_time_is_formatted() {
        assert!(format_utc(u64::MAX).ends_with('Z'));
    }
}
