//! Times as RFC 3339 tells them: `2026-11-21T07:23:14.500Z`. Pure.

use std::time::{SystemTime, UNIX_EPOCH};

const DAY_SECONDS: u64 = 24 * 60 * 60;

/// `time` in UTC to the millisecond, as everything that is stored has it; times before 1970 are
/// told as its first moment.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (mut days, seconds) = (since.as_secs() / DAY_SECONDS, since.as_secs() % DAY_SECONDS);
    let mut year = 1970;
    while days >= year_days(year) {
        days -= year_days(year);
        year += 1;
    }
    let mut month = 1;
    while days >= month_days(year, month) {
        days -= month_days(year, month);
        month += 1;
    }
    format!(
        "{year:04}-{month:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        days + 1,
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60,
        since.subsec_millis()
    )
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn year_days(year: u64) -> u64 {
    365 + u64::from(is_leap(year))
}

fn month_days(year: u64, month: u32) -> u64 {
    match month {
        2 => 28 + u64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
            assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_millis(millis)), text);
        }
    }
}
