//! The sweep schedule. Pure.

use std::collections::HashMap;
use std::time::Duration;

use crate::lifecycle::rules::duration_millis;

/// The buckets swept since the store was opened.
#[derive(Debug)]
pub(crate) struct Schedule {
    day_ms: u64,
    swept: HashMap<String, Swept>,
}

/// A bucket's last complete sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Swept {
    /// The day in UTC, counted from 1970.
    day: u64,
    revision: u64,
}

impl Schedule {
    /// Creates a schedule for days of this length.
    pub(crate) fn new(day: Duration) -> Self {
        Self { day_ms: duration_millis(day).max(1), swept: HashMap::new() }
    }

    /// Returns `true` if a bucket has not been swept since the store was opened, since its rules
    /// changed, or on this day in UTC.
    pub(crate) fn is_due(&self, bucket: &str, revision: u64, now_ms: u64) -> bool {
        self.swept
            .get(bucket)
            .is_none_or(|swept| swept.revision != revision || swept.day != now_ms / self.day_ms)
    }

    /// Records a complete sweep that started at `now_ms`.
    pub(crate) fn swept(&mut self, bucket: &str, revision: u64, now_ms: u64) {
        self.swept.insert(bucket.to_owned(), Swept { day: now_ms / self.day_ms, revision });
    }

    /// Removes buckets that no longer exist.
    pub(crate) fn retain(&mut self, exists: impl Fn(&str) -> bool) {
        self.swept.retain(|bucket, _| exists(bucket));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::rules::DAY_MS;

    #[test]
    fn bucket_is_swept_once_a_day_and_after_a_change_of_rules() {
        let mut schedule = Schedule::new(Duration::from_millis(DAY_MS));
        let noon = 100 * DAY_MS + DAY_MS / 2;
        assert!(schedule.is_due("b", 1, noon));
        schedule.swept("b", 1, noon);
        assert!(!schedule.is_due("b", 1, noon));
        assert!(!schedule.is_due("b", 1, 101 * DAY_MS - 1));
        assert!(schedule.is_due("b", 1, 101 * DAY_MS));
        assert!(schedule.is_due("b", 2, noon), "the rules changed");
        assert!(schedule.is_due("c", 1, noon), "another bucket");
        schedule.retain(|_| false);
        assert!(schedule.is_due("b", 1, noon));
    }
}
