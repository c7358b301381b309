//! Finds the instant at which the local clock shows a time. Pure: a function supplies the offsets
//! of local time from UTC.

/// The length of a day in seconds.
pub(crate) const DAY: i64 = 24 * 3600;

/// The search step in seconds. The offsets of all time zones since 1972 are multiples of it, so no
/// period between two changes of an offset is shorter.
const STEP: i64 = 15 * 60;

/// The longest time, in days, that the search covers. The longest day of a time zone had 47 hours.
const DAYS_MAX: i64 = 3;

/// Returns the local time at `utc`, both in seconds. `offset` returns the offset of local time from
/// UTC at a time, in seconds.
pub(crate) fn local_time(utc: i64, offset: &dyn Fn(i64) -> i64) -> i64 {
    utc + offset(utc)
}

/// Returns the first second, from `from` on, at which the local clock shows `wall` or later; after
/// [`DAYS_MAX`] days, the search ends with that time.
///
/// If the clock shows `wall` twice, because it is set back, this is the first of both instants. If
/// the clock skips `wall`, this is the instant at which it is set forward.
pub(crate) fn first_instant(from: i64, wall: i64, offset: &dyn Fn(i64) -> i64) -> i64 {
    let is_reached = |utc: i64| local_time(utc, offset) >= wall;
    let steps = (0..=DAYS_MAX * DAY / STEP).map(|step| from + step * STEP);
    let mut reached = steps.clone().find(|utc| is_reached(*utc)).unwrap_or(from + DAYS_MAX * DAY);
    // The instant is within the last step.
    let mut before = (reached - STEP).max(from - 1);
    while reached - before > 1 {
        let middle = before + (reached - before) / 2;
        if is_reached(middle) {
            reached = middle;
        } else {
            before = middle;
        }
    }
    reached
}

/// Zones for tests.
#[cfg(test)]
pub(crate) mod zones {
    /// A time zone: the UTC times of its changes, and the offset from each on, in hours.
    pub(crate) struct Zone(pub(crate) &'static [(&'static str, f64)]);

    /// Berlin in 2026. The clock is set forward at 02:00 and back at 03:00.
    pub(crate) const BERLIN: Zone =
        Zone(&[("2026-01-01T00", 1.0), ("2026-03-29T01", 2.0), ("2026-10-25T01", 1.0)]);

    /// Havana in 2026. The clock is set forward at midnight, which it skips, and back at 01:00 to
    /// midnight, which it shows twice.
    pub(crate) const HAVANA: Zone =
        Zone(&[("2026-01-01T00", -5.0), ("2026-03-08T05", -4.0), ("2026-11-01T05", -5.0)]);

    /// Samoa skipped the 30th of December 2011.
    pub(crate) const APIA: Zone = Zone(&[("2011-09-24T13", -10.0), ("2011-12-30T10", 14.0)]);

    /// Kathmandu, with an offset that is no whole hour.
    pub(crate) const KATHMANDU: Zone = Zone(&[("1986-01-01T00", 5.75)]);

    impl Zone {
        /// Returns the offset at `utc`, in seconds.
        pub(crate) fn offset(&self, utc: i64) -> i64 {
            let is_past = |change: &&(&str, f64)| seconds(change.0) <= utc;
            let hours = self.0.iter().rev().find(is_past).unwrap_or(&self.0[0]).1;
            #[expect(clippy::cast_possible_truncation, reason = "offsets are whole seconds")]
            let offset = (hours * 3600.0) as i64;
            offset
        }
    }

    /// Parses a prefix of `2026-03-29T01:00:00` as UTC; returns seconds since the Unix epoch.
    pub(crate) fn seconds(text: &str) -> i64 {
        let whole = format!("{text}{}", &"0000-01-01T00:00:00"[text.len()..]);
        let number = |range: std::ops::Range<usize>| whole[range].parse().unwrap();
        let utc = crate::Utc {
            year: number(0..4),
            month: number(5..7),
            day: number(8..10),
            hour: number(11..13),
            minute: number(14..16),
            second: number(17..19),
            microsecond: 0,
        };
        i64::try_from(utc.to_micros().unwrap() / 1_000_000).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::zones::{APIA, BERLIN, HAVANA, KATHMANDU, seconds};
    use super::*;

    #[test]
    fn local_times_are_found_also_at_changes_of_the_offset() {
        for (zone, wall, utc, why) in [
            (&BERLIN, "2026-07-01T00", "2026-06-30T22", "summer"),
            (&BERLIN, "2026-01-15T12:34:56", "2026-01-15T11:34:56", "winter"),
            (&BERLIN, "2026-03-29T02:30", "2026-03-29T01", "skipped: the clock is set forward"),
            (&BERLIN, "2026-10-25T02:30", "2026-10-25T00:30", "shown twice: the first"),
            (&HAVANA, "2026-03-08T00", "2026-03-08T05", "midnight is skipped"),
            (&HAVANA, "2026-11-01T00", "2026-11-01T04", "midnight is shown twice"),
            (&APIA, "2011-12-30T12", "2011-12-30T10", "a whole day is skipped"),
            (&KATHMANDU, "2026-01-01T00", "2025-12-31T18:15", "an offset in minutes"),
        ] {
            let offset = |utc| zone.offset(utc);
            let wall_seconds = seconds(wall);
            let found = first_instant(wall_seconds - DAY, wall_seconds, &offset);
            assert_eq!(found - seconds(utc), 0, "{wall}: {why}");
        }
    }

    #[test]
    fn search_ends_if_the_time_is_never_reached() {
        assert_eq!(first_instant(1000, i64::MAX, &|_| 0), 1000 + DAYS_MAX * DAY);
    }
}
