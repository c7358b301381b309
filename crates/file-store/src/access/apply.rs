//! Applying durable needles to the index of an open store.

use haul_append_log::Position;

use crate::index::entry::Change;
use crate::inner::Inner;

impl Inner {
    /// Applies the needles of durable records to the index in one step, and removes files to which
    /// nothing refers any more.
    pub(crate) fn apply(&self, records: Vec<(Vec<Change>, Position)>) {
        let Some(last) = records.iter().map(|(_, at)| at.lsn.segment()).max() else { return };
        for (changes, at) in &records {
            self.indexes.push(*at, changes);
        }
        let mut freed = Vec::new();
        let mut index = self.index.write();
        for (changes, at) in records {
            freed.extend(changes.into_iter().flat_map(|change| index.apply(change, at)));
        }
        let is_worn = index.volumes.take_worn();
        let is_checkpoint_due = self.is_checkpoint_due(&index);
        drop(index);
        if is_checkpoint_due {
            self.indexes.wake();
        }
        self.remove_files(&freed);
        if self.writers.advance(last) || is_worn {
            self.admission.background.set();
        }
    }
}
