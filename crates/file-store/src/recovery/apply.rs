//! Applies needles to the index during the replay of the log.

use haul_append_log::Position;

use crate::error::Result;
use crate::format::{Head, Kind};
use crate::index::entry::{Change, Predecessor, Replaced};
use crate::index::quotas::Reserved;
use crate::recovery::replay::Replayer;
use crate::volume_index::format::IndexedNeedle;

impl Replayer<'_> {
    pub(super) fn apply_head(&mut self, at: Position, head: Head) -> Option<Change> {
        let needle = IndexedNeedle { at, head, predecessor: Predecessor::Unknown };
        let applied = self.change(needle).and_then(|change| {
            self.apply_change(change.clone(), at)?;
            Ok(change)
        });
        match applied {
            Ok(change) => Some(change),
            Err(error) => {
                self.failed.get_or_insert(error);
                None
            }
        }
    }

    pub(super) fn apply(&mut self, needle: IndexedNeedle) {
        let at = needle.at;
        if let Err(error) = self.change(needle).and_then(|change| self.apply_change(change, at)) {
            self.failed.get_or_insert(error);
        }
    }

    /// Returns the change that a needle makes, with the object that it replaces or deletes.
    fn change(&self, needle: IndexedNeedle) -> Result<Change> {
        let IndexedNeedle { at, head, predecessor } = needle;
        let replaces = match predecessor {
            _ if at.lsn >= self.applied => self.resolve(&head, predecessor)?,
            Predecessor::Object(replaced) => Some(replaced),
            Predecessor::Unknown | Predecessor::None => None,
        };
        Ok(Change { head, replaces, reserved: Reserved::nothing(), event: None })
    }

    /// Applies a change, unless the checkpoint contains it.
    fn apply_change(&mut self, change: Change, at: Position) -> Result<()> {
        if at.lsn < self.applied {
            return Ok(());
        }
        if change.head.kind == Kind::BucketDeleted {
            self.delete_remaining(&change.head)?;
        }
        drop(self.index.apply(change, at));
        self.spill.spill(&mut self.index)
    }

    /// Returns the object that a needle replaces or deletes. The recorded predecessor is correct
    /// unless damage lost a needle in between.
    fn resolve(&self, head: &Head, recorded: Predecessor) -> Result<Option<Replaced>> {
        if !matches!(head.kind, Kind::Object | Kind::Tombstone) {
            return Ok(None);
        }
        let (bucket, key) = (&*head.bucket, &*head.key);
        match recorded {
            Predecessor::Object(old) if self.index.is_object_at(bucket, key, old.at) => {
                return Ok(Some(old));
            }
            _ if self.index.candidates(bucket, key).first().is_none() => return Ok(None),
            _ => {}
        }
        let found = match self.index.keys.recent(bucket, key) {
            Some(recent) => recent,
            None => self.index.keys.snapshot().get(bucket, key)?,
        };
        Ok(found.map(Replaced::from))
    }

    /// Deletes objects that are still in a bucket when it is deleted. Only empty buckets are
    /// deleted, so damage lost the objects' tombstones.
    fn delete_remaining(&mut self, deleted: &Head) -> Result<()> {
        let bucket = &deleted.bucket;
        if self.index.buckets.get(bucket.as_str()).is_none_or(|bucket| bucket.objects == 0) {
            return Ok(());
        }
        let mut remaining = Vec::new();
        self.index.keys.snapshot().scan(|of, key, entry| {
            if of == bucket {
                remaining.push((key.to_owned(), entry));
            }
            true
        })?;
        for (key, entry) in remaining {
            self.index.forget(bucket, &key, entry.into());
        }
        Ok(())
    }
}
