//! The copy's kept states, besides the newest one.

use super::Manifest;

/// A manifest that is kept under another name after it was replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HistoryEntry {
    /// The time at which it was written, in milliseconds since 1970, by its writer's clock.
    pub(crate) written_ms: u64,
    pub(crate) generation: u64,
    /// Its writer's epoch.
    pub(crate) epoch: u64,
}

impl HistoryEntry {
    pub(crate) fn of(manifest: &Manifest) -> Self {
        let Manifest { written_ms, generation, epoch, .. } = *manifest;
        Self { written_ms, generation, epoch }
    }

    /// `true` if this entry stands for an earlier manifest with another state.
    pub(crate) fn precedes(&self, other: &Self) -> bool {
        self.generation < other.generation
            && (self.written_ms, self.epoch) != (other.written_ms, other.epoch)
    }
}

impl Manifest {
    /// Returns the newest kept state that was written at or before a time.
    pub(crate) fn history_at(&self, at_ms: u64) -> Option<HistoryEntry> {
        self.history.iter().rev().find(|entry| entry.written_ms <= at_ms).copied()
    }

    /// Removes and returns the kept states that are not needed to restore the copy as of
    /// `oldest_ms` or a later time. The last state before this time is still needed.
    pub(crate) fn remove_history_before(&mut self, oldest_ms: u64) -> Vec<HistoryEntry> {
        let needed = self.history.iter().rposition(|entry| entry.written_ms <= oldest_ms);
        self.history.drain(..needed.unwrap_or(0)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(times: &[u64]) -> Manifest {
        let entries = (1..).zip(times);
        let history = entries
            .map(|(generation, written_ms)| HistoryEntry {
                written_ms: *written_ms,
                generation,
                epoch: 1,
            })
            .collect();
        Manifest { history, ..Manifest::default() }
    }

    #[test]
    fn newest_state_at_or_before_a_time_is_found() {
        // The clock was stepped back after the second one.
        let manifest = manifest(&[100, 200, 150, 250]);
        let found = |at| manifest.history_at(at).map(|entry| entry.generation);
        assert_eq!([99, 100, 149, 150].map(found), [None, Some(1), Some(1), Some(3)]);
        assert_eq!([200, 249, 250, 9999].map(found), [Some(3), Some(3), Some(4), Some(4)]);
    }

    #[test]
    fn state_before_the_oldest_time_is_kept() {
        let kept = |oldest| {
            let mut manifest = manifest(&[100, 200, 300]);
            let removed = manifest.remove_history_before(oldest).len();
            (removed, manifest.history.len())
        };
        assert_eq!([0, 100, 199].map(kept), [(0, 3); 3]);
        assert_eq!([200, 299, 300, 9999].map(kept), [(1, 2), (1, 2), (2, 1), (2, 1)]);
    }
}
