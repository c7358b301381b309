//! The schedule of sweeps. Pure.

use std::collections::HashMap;

const DAY_MS: u64 = 24 * 3_600_000;

/// The buckets swept since the store was opened.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    swept: HashMap<String, Swept>,
}

/// The last complete sweep of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Swept {
    /// The day in UTC, counted from 1970.
    day: u64,
    /// The revision of the rules.
    revision: u64,
}

impl Schedule {
    /// Returns `true` if a bucket has not been swept since the store was opened, since its rules
    /// changed, or on this day in UTC.
    pub(super) fn is_due(&self, bucket: &str, revision: u64, now_ms: u64) -> bool {
        self.swept
            .get(bucket)
            .is_none_or(|swept| swept.revision != revision || swept.day != now_ms / DAY_MS)
    }

    /// Records a complete sweep that started at `now_ms`.
    pub(super) fn swept(&mut self, bucket: &str, revision: u64, now_ms: u64) {
        self.swept.insert(bucket.to_owned(), Swept { day: now_ms / DAY_MS, revision });
    }

    /// Removes buckets that no longer exist.
    pub(super) fn retain(&mut self, exists: impl Fn(&str) -> bool) {
        self.swept.retain(|bucket, _| exists(bucket));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_is_swept_once_a_day_and_after_a_change_of_rules() {
        let mut schedule = Schedule::default();
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
