//! Applying durable needles to the index of an open store.

use haul_append_log::Position;

use crate::index::Index;
use crate::index::entry::Change;
use crate::inner::Inner;

impl Inner {
    /// Applies the needles of a durable record to the index in one step, and removes files that are
    /// no longer referenced.
    pub(crate) fn apply(&self, changes: Vec<Change>, at: Position) {
        self.indexes.push(at, &changes);
        self.apply_to_index(changes.into_iter().map(|change| (change, at)));
    }

    /// Applies durable records of one needle each to the index in one step, in log order, and
    /// removes files that are no longer referenced.
    pub(crate) fn apply_records(&self, records: Vec<(Change, Position)>) {
        self.indexes.push_records(&records);
        self.apply_to_index(records.into_iter());
    }

    /// Records the length of the volume of a record before the first record of this volume is
    /// applied: the log may use a file again that is longer than new volumes.
    pub(crate) fn announce(&self, index: &mut Index, at: Position) {
        let number = at.lsn.segment();
        if index.addresses.range(number).is_none()
            && let Some(segment) = self.log.segments().iter().find(|found| found.number == number)
        {
            index.addresses.announce(number, segment.bytes.into());
        }
    }

    fn apply_to_index(&self, changes: impl Iterator<Item = (Change, Position)>) {
        let (mut freed, mut volume) = (Vec::new(), 0);
        let mut index = self.index.write();
        for (change, at) in changes {
            self.announce(&mut index, at);
            freed.extend(index.apply(change, at));
            volume = volume.max(at.lsn.segment());
        }
        let is_worn = index.volumes.take_worn();
        let is_checkpoint_due = self.is_checkpoint_due(&index);
        drop(index);
        if is_checkpoint_due {
            self.indexes.wake();
        }
        self.remove_files(&freed);
        if self.writers.advance(volume) || is_worn {
            self.admission.background.set();
        }
    }
}
