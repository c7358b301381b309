//! Appends needles to the log of an open store.

use haul_append_log::{Room, Ticket};

use crate::error::{Error, Result};
use crate::index::entry::Change;
use crate::inner::Inner;
use crate::needles::apply::AppendedRecord;
use crate::object::Attributes;
use crate::troubles::Work;

impl Inner {
    /// Appends needles to the log as one record.
    pub(crate) fn append(&self, needles: &[u8], data: &[u8], room: Room) -> Result<Ticket> {
        self.check_append(room)?;
        let appended = self.volumes.log.append(&[needles, data], room).map_err(Error::from);
        self.note_refusal(&appended);
        appended
    }

    /// Appends a record like [`Self::append`], or returns `None` if this would block.
    pub(crate) fn try_append(
        &self,
        needles: &[u8],
        data: &[u8],
        room: Room,
    ) -> Result<Option<Ticket>> {
        self.check_append(room)?;
        let appended = self.volumes.log.try_append(&[needles, data], room).map_err(Error::from);
        self.note_refusal(&appended);
        appended
    }

    /// Records that the log rejects records, unless the disk is full: the log may then accept the
    /// record once compaction has freed space.
    fn note_refusal<T>(&self, appended: &Result<T>) {
        if matches!(appended, Err(error) if !matches!(error, Error::Full { .. })) {
            self.maintenance.troubles.note(Work::Changes, appended);
        }
    }

    fn check_append(&self, room: Room) -> Result<()> {
        self.check_writable()?;
        if room == Room::Ordinary && self.keyspace.index.read().addresses.is_nearly_full() {
            let what =
                "the volumes have reached the maximum total size of a store, 8 TiB".to_owned();
            return Err(Error::Invalid { what });
        }
        Ok(())
    }

    /// Appends an object's needle, and tombstones that take effect together with it.
    pub(crate) fn append_with_ends(
        &self,
        head: &[u8],
        data: &[u8],
        ends: &[Change],
        room: Room,
    ) -> Result<Ticket> {
        if ends.is_empty() {
            return self.append(head, data, room);
        }
        let none = Attributes::new();
        let mut rest = data.to_vec();
        ends.iter().for_each(|end| rest.extend(end.head.encode(&none)));
        self.append(head, &rest, room)
    }

    /// Appends needles without attributes and data as one record.
    pub(crate) fn append_heads(&self, changes: Vec<Change>, room: Room) -> Result<AppendedRecord> {
        let none = Attributes::new();
        let record: Vec<u8> = changes.iter().flat_map(|change| change.head.encode(&none)).collect();
        let ticket = self.append(&record, &[], room)?;
        Ok(AppendedRecord { changes, ticket })
    }

    /// Appends needles without attributes and data as one record, waits until it is durable, and
    /// applies it.
    pub(crate) fn commit_heads(&self, changes: Vec<Change>, room: Room) -> Result<()> {
        self.finish_record(self.append_heads(changes, room)?)
    }
}
