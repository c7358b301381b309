//! Limits how often a condition that lasts is logged.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

const INTERVAL: Duration = Duration::from_secs(60);

/// Permits a line in the log at most once a minute.
#[derive(Debug, Default)]
pub(crate) struct LogLimit {
    last: Mutex<Option<Instant>>,
}

impl LogLimit {
    pub(crate) fn permits(&self, now: Instant) -> bool {
        let mut last = self.last.lock();
        let is_due = last.is_none_or(|last| now.saturating_duration_since(last) >= INTERVAL);
        if is_due {
            *last = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_a_minute_apart() {
        let (limit, start) = (LogLimit::default(), Instant::now());
        let at = |seconds| limit.permits(start + Duration::from_secs(seconds));
        assert_eq!(
            [0, 1, 59, 60, 61, 119, 500].map(at),
            [true, false, false, true, false, false, true]
        );
    }
}
