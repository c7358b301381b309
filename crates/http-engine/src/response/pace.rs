//! The rate at which a client takes a response. Performs no I/O.
//!
//! The bytes that the kernel accepts from the server are not enough to determine the rate: the kernel
//! accepts megabytes at once, and then none until a third of them was sent, which takes a slow client
//! minutes. Therefore the bytes that the client has acknowledged count, too.
//!
//! The kernel of the client behaves likewise: if the client has read fast before, it buffers
//! megabytes, and acknowledges nothing until the client has read a good part of them. Therefore bytes
//! acknowledged beyond the minimum count for later periods, for at most [`PERIODS_MAX`] of them. That
//! is enough for a client at eight times the minimum rate to read 4 MB, and few enough that a client
//! that has stopped reading is not kept for hours.

/// The number of periods without progress that bytes acknowledged earlier can make up for.
const PERIODS_MAX: u64 = 16;

/// The rate of one response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pace {
    /// Bytes written to the socket since the last check.
    written_bytes: u64,
    /// Bytes in the send queue of the socket at the last check; `None` before the first one.
    queued_bytes: Option<u64>,
    /// Bytes acknowledged beyond the minimum so far.
    ahead_bytes: u64,
}

impl Pace {
    /// Adds bytes that were written to the socket.
    pub(crate) fn add_written(&mut self, bytes: usize) {
        self.written_bytes += bytes as u64;
    }

    /// Ends a period, in which the client had to take `bytes_min`; returns `true` if it did, or is
    /// ahead. `queued_bytes` is the length of the send queue, `None` if the kernel does not report
    /// it. The first period always passes: bytes of an earlier response may have been in the queue.
    pub(crate) fn end_period(&mut self, queued_bytes: Option<u64>, bytes_min: u64) -> bool {
        let (written_bytes, is_first) = (self.written_bytes, self.queued_bytes.is_none());
        let acknowledged_bytes = match (self.queued_bytes, queued_bytes) {
            (before, Some(now)) => (before.unwrap_or(0) + written_bytes).saturating_sub(now),
            (_, None) => 0,
        };
        let taken_bytes = self.ahead_bytes + acknowledged_bytes;
        let ahead_bytes = taken_bytes.saturating_sub(bytes_min);
        let ahead_bytes = ahead_bytes.min(bytes_min.saturating_mul(PERIODS_MAX));
        *self = Self { written_bytes: 0, queued_bytes, ahead_bytes };
        // Written bytes count because they needed room in the queue. The queue of a unix socket can
        // be longer than the written bytes: the kernel counts the memory there.
        let is_first = is_first && queued_bytes.is_some();
        is_first || written_bytes.max(taken_bytes) >= bytes_min
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks periods of `(written, queued at the end, expected outcome)` with a minimum of 30.
    fn check(periods: &[(usize, Option<u64>, bool)]) {
        let mut pace = Pace::default();
        for (number, (written, queued, expected)) in periods.iter().enumerate() {
            pace.add_written(*written);
            assert_eq!(pace.end_period(*queued, 30), *expected, "{number} of {periods:?}");
        }
    }

    #[test]
    fn acknowledged_and_written_bytes_count() {
        for periods in [
            &[(900, Some(900), true), (0, Some(870), true), (0, Some(841), false)][..],
            &[(1000, Some(1000), true), (0, Some(1000), false)],
            &[(1000, Some(1000), true), (20, Some(990), true), (20, Some(981), false)],
            &[(1000, Some(2000), true), (40, Some(2100), true), (0, Some(2100), false)],
            // The queue holds bytes of an earlier response.
            &[(0, Some(5000), true), (0, Some(4970), true), (0, Some(4970), false)],
            &[(30, None, true), (29, None, false)],
        ] {
            check(periods);
        }
    }

    #[test]
    fn bytes_acknowledged_ahead_count_for_later_periods_up_to_a_limit() {
        for (first_acknowledged, idle_periods) in [
            (30, 0),
            (30 + 29, 0),
            (30 + 30, 1),
            (30 + 100, 3),
            (30 + 16 * 30, 16),
            (200_000_000, 16),
        ] {
            let first = (first_acknowledged + 1000, Some(1000), true);
            let mut periods = vec![first];
            periods.extend(vec![(0, Some(1000), true); idle_periods]);
            periods.push((0, Some(1000), false));
            check(&periods);
        }
    }

    #[test]
    fn client_at_eight_times_the_minimum_may_acknowledge_in_bursts() {
        // 240 bytes in each period, acknowledged in every 15th one.
        let mut periods = vec![(1_000_000, Some(500_000), true)];
        for number in 1..=100 {
            periods.push((0, Some(500_000 - number / 15 * 15 * 240), true));
        }
        check(&periods);
    }
}
