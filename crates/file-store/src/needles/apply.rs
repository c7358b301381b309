//! Applying durable needles to the index of an open store.

use haul_append_log::{Position, Ticket};

use crate::checkpoint::write::is_checkpoint_due;
use crate::error::Result;
use crate::event_queues::{QueuedEvent, StoredEvent};
use crate::index::entry::{Change, DurableRecord};
use crate::index::version_names::event_queue;
use crate::index::{Index, needle_position};
use crate::inner::Inner;

/// A record that was appended and may not be durable yet, and its needles.
#[derive(Debug)]
pub(crate) struct AppendedRecord {
    pub(crate) changes: Vec<Change>,
    pub(crate) ticket: Ticket,
}

/// An operation whose records may not be durable yet.
#[derive(Debug)]
pub(crate) struct Pending<T> {
    /// The records, in log order. Each must be applied once it is durable, even if the operation
    /// failed after it was appended.
    pub(crate) records: Vec<AppendedRecord>,
    /// The outcome once the records are durable.
    pub(crate) outcome: Result<T>,
}

impl<T> Pending<T> {
    /// Calls `append`, which appends records to the log and adds them to the list that it receives.
    pub(crate) fn start(append: impl FnOnce(&mut Vec<AppendedRecord>) -> Result<T>) -> Self {
        let mut records = Vec::new();
        let outcome = append(&mut records);
        Self { records, outcome }
    }

    pub(crate) fn map<U>(self, to: impl FnOnce(T) -> U) -> Pending<U> {
        Pending { records: self.records, outcome: self.outcome.map(to) }
    }
}

impl Inner {
    /// Waits until an operation's records are durable, and applies them to the index. Operations
    /// that start before the first of them finishes share syncs.
    pub(crate) fn finish<T>(&self, pending: Pending<T>) -> Result<T> {
        pending.records.into_iter().try_for_each(|record| self.finish_record(record))?;
        pending.outcome
    }

    /// Waits until a record is durable, and applies it to the index.
    pub(crate) fn finish_record(&self, record: AppendedRecord) -> Result<()> {
        let at = record.ticket.wait()?;
        self.apply(record.changes, at);
        Ok(())
    }

    /// Applies a durable record's needles to the index in one step, and removes files that are no
    /// longer referenced.
    pub(crate) fn apply(&self, changes: Vec<Change>, at: Position) {
        self.volumes.indexes.push(at, &changes);
        self.apply_to_index(changes.into_iter().map(|change| (change, at)));
    }

    /// Applies durable records to the index in one step, in log order, and removes files that are no
    /// longer referenced.
    pub(crate) fn apply_records(&self, records: Vec<DurableRecord>) {
        self.volumes.indexes.push_records(&records);
        let changes = |record: DurableRecord| {
            let DurableRecord { at, change, others } = record;
            std::iter::once(change).chain(others).map(move |change| (change, at))
        };
        self.apply_to_index(records.into_iter().flat_map(changes));
    }

    /// Announces a volume's length before the volume's first record is applied: the log may reuse a
    /// file that is longer than new volumes.
    pub(crate) fn announce(&self, index: &mut Index, at: Position) {
        let number = at.lsn.segment();
        if index.addresses.range(number).is_none()
            && let Some(segment) =
                self.volumes.log.segments().iter().find(|found| found.number == number)
        {
            index.addresses.announce(number, segment.bytes.into());
        }
    }

    /// Returns the event that a needle queues.
    fn take_event(&self, change: &mut Change, at: Position) -> Option<QueuedEvent> {
        let fields = change.event.take()?;
        let queue = event_queue(&change.head.bucket)?.into();
        let (member, sequence) = (self.options.member, change.head.version.0);
        let stored =
            StoredEvent { at: needle_position(&change.head, at), bytes: change.head.bytes };
        Some(QueuedEvent { queue, member, sequence, fields, stored })
    }

    fn apply_to_index(&self, changes: impl Iterator<Item = (Change, Position)>) {
        let (mut freed, mut volume) = (Vec::new(), 0);
        let mut events = Vec::new();
        let mut index = self.keyspace.index.write();
        for (mut change, at) in changes {
            debug_assert!(
                at.lsn < self.volumes.log.synced(),
                "only durable needles become visible"
            );
            self.announce(&mut index, at);
            events.extend(self.take_event(&mut change, at));
            freed.extend(index.apply(change, at));
            volume = volume.max(at.lsn.segment());
        }
        let compaction_hint = index.volumes.take_compaction_hint();
        let is_checkpoint_due = is_checkpoint_due(self, &index);
        drop(index);
        if let Some(queues) = self.options.event_queues.as_ref().filter(|_| !events.is_empty()) {
            // The writer still holds the key's lock, so that a key's events are in order.
            queues.push(events);
        }
        if is_checkpoint_due {
            self.volumes.indexes.wake();
        }
        self.remove_files(&freed);
        if self.keyspace.writers.advance(volume) || compaction_hint {
            self.maintenance.admission.background.set();
        }
    }
}
