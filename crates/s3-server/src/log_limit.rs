//! Limits how often a lasting condition is logged.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

const INTERVAL: Duration = Duration::from_secs(60);

/// Permits a line in the log at most once a minute for each condition.
#[derive(Debug)]
pub(crate) struct LogLimit<C> {
    last: Mutex<HashMap<C, Instant>>,
}

impl<C> Default for LogLimit<C> {
    fn default() -> Self {
        Self { last: Mutex::default() }
    }
}

impl<C: Eq + Hash> LogLimit<C> {
    pub(crate) fn permits(&self, condition: C, now: Instant) -> bool {
        let mut lines = self.last.lock();
        let last = lines.get(&condition);
        let is_due = last.is_none_or(|last| now.saturating_duration_since(*last) >= INTERVAL);
        if is_due {
            lines.insert(condition, now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_condition_are_a_minute_apart() {
        let (limit, start) = (LogLimit::default(), Instant::now());
        let at = |seconds| limit.permits("a", start + Duration::from_secs(seconds));
        assert_eq!(
            [0, 1, 59, 60, 61, 119, 500].map(at),
            [true, false, false, true, false, false, true]
        );
        assert!(limit.permits("b", start));
    }
}
