//! Whether a client takes what it asked for. Pure.
//!
//! What the kernel took from us is not all: it takes megabytes at once, and then nothing until a third
//! of them has gone out, which takes a slow client minutes. What the client has confirmed counts, too.
//!
//! The client's kernel does the same: one that has read fast before holds megabytes for it, and
//! confirms nothing until the client has read a good part of them. So what was confirmed beyond what
//! was wanted counts for later periods, of which there are [`PERIODS_MAX`] at most: long enough for
//! one that takes eight times the minimum to read 4 MB, and short enough that one which has stopped
//! is not kept for hours.

/// So many periods may pass with nothing taken, if as much was taken ahead.
const PERIODS_MAX: u64 = 16;

/// The pace of one answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pace {
    /// Handed to the kernel since it was looked at last.
    handed_bytes: u64,
    /// What the kernel held then; `None` before the first look.
    held_bytes: Option<u64>,
    /// Confirmed beyond what was wanted so far.
    ahead_bytes: u64,
}

impl Pace {
    /// The kernel took so many bytes more.
    pub(crate) fn handed(&mut self, bytes: u64) {
        self.handed_bytes += bytes;
    }

    /// A period is over, and the kernel holds so many bytes: whether the client has taken
    /// `wanted_bytes` in it, or before. `None` is a kernel that does not tell. The first period is
    /// only where counting begins: some of an earlier answer may still have been on its way.
    pub(crate) fn is_enough(&mut self, held_bytes: Option<u64>, wanted_bytes: u64) -> bool {
        let (handed_bytes, is_first) = (self.handed_bytes, self.held_bytes.is_none());
        let confirmed_bytes = match (self.held_bytes, held_bytes) {
            (before, Some(now)) => (before.unwrap_or(0) + handed_bytes).saturating_sub(now),
            (_, None) => 0,
        };
        let taken_bytes = self.ahead_bytes + confirmed_bytes;
        let ahead_bytes = taken_bytes.saturating_sub(wanted_bytes);
        let ahead_bytes = ahead_bytes.min(wanted_bytes.saturating_mul(PERIODS_MAX));
        *self = Self { handed_bytes: 0, held_bytes, ahead_bytes };
        // What was handed had to find room. Of a unix socket more is held than was handed: memory is
        // counted there.
        let is_beginning = is_first && held_bytes.is_some();
        is_beginning || handed_bytes.max(taken_bytes) >= wanted_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For each period: handed to the kernel, held by it at the end; whether 30 are enough.
    fn check(periods: &[(u64, Option<u64>, bool)]) {
        let mut pace = Pace::default();
        for (number, (handed, held, expected)) in periods.iter().enumerate() {
            pace.handed(*handed);
            assert_eq!(pace.is_enough(*held, 30), *expected, "{number} of {periods:?}");
        }
    }

    #[test]
    fn what_the_client_confirmed_and_what_found_room_counts() {
        for periods in [
            &[(900, Some(900), true), (0, Some(870), true), (0, Some(841), false)][..],
            &[(1000, Some(1000), true), (0, Some(1000), false)],
            &[(1000, Some(1000), true), (20, Some(990), true), (20, Some(981), false)],
            &[(1000, Some(2000), true), (40, Some(2100), true), (0, Some(2100), false)],
            // More than was handed: it is of an earlier answer.
            &[(0, Some(5000), true), (0, Some(4970), true), (0, Some(4970), false)],
            &[(30, None, true), (29, None, false)],
        ] {
            check(periods);
        }
    }

    #[test]
    fn what_was_confirmed_ahead_counts_later_up_to_a_limit() {
        for (first_confirmed, idle_periods) in [
            (30, 0),
            (30 + 29, 0),
            (30 + 30, 1),
            (30 + 100, 3),
            (30 + 16 * 30, 16),
            (200_000_000, 16),
        ] {
            let first = (first_confirmed + 1000, Some(1000), true);
            let mut periods = vec![first];
            periods.extend(vec![(0, Some(1000), true); idle_periods]);
            periods.push((0, Some(1000), false));
            check(&periods);
        }
    }

    #[test]
    fn a_client_eight_times_above_the_minimum_may_read_in_big_pieces() {
        // 240 in each period, which its kernel confirms in every 15th one.
        let mut periods = vec![(1_000_000, Some(500_000), true)];
        for number in 1..=100 {
            periods.push((0, Some(500_000 - number / 15 * 15 * 240), true));
        }
        check(&periods);
    }
}
