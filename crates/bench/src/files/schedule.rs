//! When requests of a fixed rate are due. Pure.

use std::time::Duration;

/// Requests at equal distances, whatever became of those before: who is late waits with all that
/// comes behind, and each of them counts from when it was due \[HdrHistogram\].
#[derive(Debug, Clone, Copy)]
pub(super) struct Schedule {
    per_second: f64,
    count: u64,
    next: u64,
}

impl Schedule {
    pub(super) fn new(per_second: f64, time: Duration) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "a count of what fits into a run")]
        #[expect(clippy::cast_sign_loss, reason = "neither is below nothing")]
        let count = (per_second.max(1.0) * time.as_secs_f64()) as u64;
        Self { per_second: per_second.max(1.0), count: count.max(1), next: 0 }
    }

    /// The moment of the next request, if that has come.
    pub(super) fn next_due(&mut self, now: Duration) -> Option<Duration> {
        let due = Duration::from_secs_f64(self.next as f64 / self.per_second);
        let is_due = self.next < self.count && due <= now;
        self.next += u64::from(is_due);
        is_due.then_some(due)
    }

    /// Whether all were told.
    pub(super) fn is_over(&self) -> bool {
        self.next == self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_due_at_their_times_and_none_is_left_out_after_a_stall() {
        let ms = Duration::from_millis;
        let mut schedule = Schedule::new(100.0, ms(100));
        assert_eq!(schedule.next_due(ms(0)), Some(ms(0)));
        assert_eq!(schedule.next_due(ms(9)), None);
        assert_eq!(schedule.next_due(ms(10)), Some(ms(10)));
        // Nobody had time for 70 ms: those which were due meanwhile keep their moments.
        let late: Vec<_> = std::iter::from_fn(|| schedule.next_due(ms(80))).collect();
        assert_eq!(late, [20, 30, 40, 50, 60, 70, 80].map(ms));
        assert!(!schedule.is_over());
        assert_eq!(schedule.next_due(ms(1000)), Some(ms(90)));
        assert!(schedule.is_over() && schedule.next_due(ms(9999)).is_none());
    }

    #[test]
    fn there_is_at_least_one() {
        let mut schedule = Schedule::new(0.0, Duration::ZERO);
        assert_eq!(schedule.next_due(Duration::ZERO), Some(Duration::ZERO));
        assert!(schedule.is_over());
    }
}
