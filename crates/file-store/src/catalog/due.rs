//! The limits on recent changes at which a checkpoint is due. Pure, except for atomic numbers.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::options::{Options, RecentChanges};

/// Limits on recent changes. The next checkpoint is due when the changes reach either one.
#[derive(Debug)]
pub(crate) struct CheckpointDue {
    /// The limit after a successful checkpoint.
    base_limit: RecentChanges,
    key_bytes: AtomicU64,
    needles: AtomicU64,
}

impl CheckpointDue {
    pub(crate) fn new(options: &Options) -> Self {
        let base_limit = options.recent_changes_max();
        let (key_bytes, needles) = (base_limit.key_bytes.into(), base_limit.needles.into());
        Self { base_limit, key_bytes, needles }
    }

    /// Returns `true` if a checkpoint is due after these changes.
    pub(crate) fn is_reached(&self, recent: RecentChanges) -> bool {
        recent.key_bytes >= self.key_bytes.load(Ordering::Relaxed)
            || recent.needles >= self.needles.load(Ordering::Relaxed)
    }

    /// Restores the base limit after a checkpoint.
    pub(crate) fn reset(&self) {
        self.set(self.base_limit);
    }

    /// Raises the limit after a checkpoint failed to write these changes.
    pub(crate) fn postpone(&self, failed: RecentChanges) {
        self.set(RecentChanges {
            key_bytes: failed.key_bytes.max(self.base_limit.key_bytes)
                + self.base_limit.key_bytes / 4,
            needles: failed.needles.max(self.base_limit.needles) + self.base_limit.needles / 4,
        });
    }

    fn set(&self, limit: RecentChanges) {
        self.key_bytes.store(limit.key_bytes, Ordering::Relaxed);
        self.needles.store(limit.needles, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_number_makes_a_checkpoint_due_and_failure_raises_both() {
        let due = CheckpointDue::new(&Options::default());
        let changes = |key_bytes, needles| RecentChanges { key_bytes, needles };
        let (bytes, needles) = (32 << 20, 1 << 16);
        assert!(!due.is_reached(changes(bytes - 1, needles - 1)));
        assert!(due.is_reached(changes(bytes, 0)) && due.is_reached(changes(0, needles)));
        due.postpone(changes(100, needles));
        assert!(!due.is_reached(changes(bytes, needles)));
        assert!(due.is_reached(changes(bytes / 4 * 5, 0)));
        assert!(due.is_reached(changes(0, needles / 4 * 5)));
        due.reset();
        assert!(due.is_reached(changes(0, needles)));
    }
}
