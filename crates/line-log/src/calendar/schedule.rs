//! Computes the times at which files are closed (rotation by time). Pure.

use std::time::Duration;

use super::local::{DAY, first_instant, local_time};

/// The times at which the current file is closed, unless it is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schedule {
    /// At each multiple of an interval since the Unix epoch, in UTC: an hour begins on the hour, a
    /// day at midnight. Whole seconds.
    Every(Duration),
    /// Each day at this time of the local clock, such as at midnight, in seconds after midnight.
    /// Days on which the clock is changed have 23 or 25 hours. If the clock skips the time, the
    /// file is closed when the clock is set forward; if it shows the time twice, at the first.
    Daily(u32),
}

impl Schedule {
    pub(crate) fn is_valid(self) -> bool {
        match self {
            Self::Every(every) => every.as_secs() > 0 && every.subsec_nanos() == 0,
            Self::Daily(second) => i64::from(second) < DAY,
        }
    }

    /// Returns the first time of the schedule after `us`, both in microseconds since the Unix
    /// epoch. `offset` returns the offset of local time from UTC at a time, both in seconds.
    pub(crate) fn next_us(self, us: u64, offset: &dyn Fn(i64) -> i64) -> u64 {
        match self {
            Self::Every(every) => {
                let every_us = u64::try_from(every.as_micros()).unwrap_or(u64::MAX).max(1);
                (us / every_us).saturating_add(1).saturating_mul(every_us)
            }
            Self::Daily(second) => {
                let second = i64::from(second);
                let utc = i64::try_from(us / 1_000_000).unwrap_or(i64::MAX / 2);
                // A day begins at `second`, not at midnight.
                let day = (local_time(utc, offset) - second).div_euclid(DAY);
                let next = first_instant(utc, (day + 1) * DAY + second, offset);
                u64::try_from(next).unwrap_or(0).saturating_mul(1_000_000)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::local::zones::{APIA, BERLIN, HAVANA, KATHMANDU, Zone, seconds};
    use super::*;

    fn next(schedule: Schedule, zone: &Zone, from: &str) -> i64 {
        let us = u64::try_from(seconds(from)).unwrap() * 1_000_000 + 7;
        let next = schedule.next_us(us, &|utc| zone.offset(utc));
        assert!(next > us && next.is_multiple_of(1_000_000), "{next}");
        i64::try_from(next / 1_000_000).unwrap()
    }

    #[test]
    fn intervals_are_aligned_to_the_epoch_in_utc() {
        let hourly = Schedule::Every(Duration::from_hours(1));
        let daily = Schedule::Every(Duration::from_hours(24));
        for (schedule, from, to) in [
            (hourly, "2026-03-29T00:00:00", "2026-03-29T01"),
            (hourly, "2026-03-29T00:59:59", "2026-03-29T01"),
            (daily, "2026-03-28T23:00:00", "2026-03-29T00"),
            (daily, "2026-03-29T00:00:00", "2026-03-30T00"),
        ] {
            assert_eq!(next(schedule, &BERLIN, from), seconds(to), "{from}");
        }
        let longest = Schedule::Every(Duration::from_secs(u64::MAX));
        assert_eq!(longest.next_us(5, &|_| 0), u64::MAX);
    }

    #[test]
    fn local_days_begin_at_midnight_of_the_local_clock() {
        let midnight = Schedule::Daily(0);
        for (zone, from, to, hours) in [
            (&BERLIN, "2026-01-14T23", "2026-01-15T23", 24),
            (&BERLIN, "2026-01-15T22:59:59", "2026-01-15T23", 0),
            (&BERLIN, "2026-03-28T23", "2026-03-29T22", 23),
            (&BERLIN, "2026-10-24T22", "2026-10-25T23", 25),
            (&HAVANA, "2026-03-07T05", "2026-03-08T05", 24),
            (&HAVANA, "2026-03-08T05", "2026-03-09T04", 23),
            (&HAVANA, "2026-11-01T04", "2026-11-02T05", 25),
            (&APIA, "2011-12-29T10", "2011-12-30T10", 24),
            (&APIA, "2011-12-30T10", "2011-12-31T10", 24),
            (&KATHMANDU, "2026-01-01T18:15", "2026-01-02T18:15", 24),
        ] {
            assert_eq!(next(midnight, zone, from), seconds(to), "{from}");
            assert_eq!((seconds(to) - seconds(from)) / 3600, hours, "{from}");
        }
    }

    #[test]
    fn other_times_of_the_day_are_skipped_or_doubled_with_the_clock() {
        let half_past_two = Schedule::Daily(2 * 3600 + 1800);
        for (from, to, why) in [
            ("2026-06-01T00:00", "2026-06-01T00:30", "summer"),
            ("2026-03-28T01:30", "2026-03-29T01", "skipped: the clock is set forward"),
            ("2026-03-29T01", "2026-03-30T00:30", "the day after"),
            ("2026-10-24T00:30", "2026-10-25T00:30", "shown twice: the first"),
            ("2026-10-25T00:30", "2026-10-26T01:30", "the second is no rotation"),
        ] {
            assert_eq!(next(half_past_two, &BERLIN, from) - seconds(to), 0, "{from}: {why}");
        }
    }
}
