//! Appends needles to the log of an open store.

use haul_append_log::{SpacePriority, Ticket};

use crate::error::{Error, Result};
use crate::failures::WorkKind;
use crate::index::entry::Change;
use crate::inner::Inner;
use crate::needles::apply::AppendedRecord;

impl Inner {
    /// Appends needles to the log as one record.
    pub(crate) fn append(
        &self,
        needles: &[u8],
        data: &[u8],
        priority: SpacePriority,
    ) -> Result<Ticket> {
        self.append_parts(&[needles, data], priority)
    }

    fn append_parts(&self, parts: &[&[u8]], priority: SpacePriority) -> Result<Ticket> {
        self.check_append(priority)?;
        let appended = self.volumes.log.append(parts, priority).map_err(Error::from);
        self.note_refusal(&appended);
        appended
    }

    /// Appends a record like [`Self::append_with`], or returns `None` if this would block.
    pub(crate) fn try_append_with(
        &self,
        head: &[u8],
        data: &[u8],
        others: &[Change],
        priority: SpacePriority,
    ) -> Result<Option<Ticket>> {
        self.check_append(priority)?;
        let rest: Vec<u8> = others.iter().flat_map(Change::encode).collect();
        let appended = self.volumes.log.try_append(&[head, data, &rest], priority);
        let appended = appended.map_err(Error::from);
        self.note_refusal(&appended);
        appended
    }

    /// Records that the log rejects records, unless the disk is full: the log may then accept the
    /// record once compaction has freed space.
    fn note_refusal<T>(&self, appended: &Result<T>) {
        if matches!(appended, Err(error) if !matches!(error, Error::Full { .. })) {
            self.maintenance.failures.note(WorkKind::Changes, appended);
        }
    }

    fn check_append(&self, priority: SpacePriority) -> Result<()> {
        self.check_writable()?;
        if priority == SpacePriority::Ordinary
            && self.keyspace.index.read().addresses.is_nearly_full()
        {
            let what =
                "the volumes have reached the maximum total size of a store, 64 TiB".to_owned();
            return Err(Error::Invalid { what });
        }
        Ok(())
    }

    /// Appends, as one record, an object's needle and other needles that take effect together with
    /// it.
    pub(crate) fn append_with(
        &self,
        head: &[u8],
        data: &[u8],
        others: &[Change],
        priority: SpacePriority,
    ) -> Result<Ticket> {
        let rest: Vec<u8> = others.iter().flat_map(Change::encode).collect();
        self.append_parts(&[head, data, &rest], priority)
    }

    /// Appends needles as one record.
    pub(crate) fn append_heads(
        &self,
        changes: Vec<Change>,
        priority: SpacePriority,
    ) -> Result<AppendedRecord> {
        let record: Vec<u8> = changes.iter().flat_map(Change::encode).collect();
        let ticket = self.append(&record, &[], priority)?;
        Ok(AppendedRecord { changes, ticket })
    }

    /// Appends needles as one record, waits until it is durable, and
    /// applies it.
    pub(crate) fn commit_heads(&self, changes: Vec<Change>, priority: SpacePriority) -> Result<()> {
        self.finish_record(self.append_heads(changes, priority)?)
    }
}
