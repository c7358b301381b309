//! Deleting objects.

use std::collections::HashSet;

use haul_append_log::{Position, Room, Ticket};

use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::format::Kind;
use crate::index::entry::{Change, Replaced};
use crate::object::{Attributes, ObjectInfo};
use crate::store::Store;

/// The deletion of the object of a key.
#[derive(Clone, Copy)]
pub struct Deletion<'a> {
    /// The key.
    pub key: &'a str,
    /// If it returns `false` for the current object, the object is not deleted. It is called while
    /// the key is locked, so it must not call the store.
    pub condition: Option<&'a dyn Fn(&ObjectInfo) -> bool>,
}

impl std::fmt::Debug for Deletion<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let is_conditional = self.condition.is_some();
        f.debug_struct("Deletion")
            .field("key", &self.key)
            .field("is_conditional", &is_conditional)
            .finish()
    }
}

impl Store {
    /// Deletes an object. Returns `true` if it existed, or may have existed in a damaged place.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`], [`Error::NotReplicated`]. On a full disk the call succeeds, or waits
    /// until compaction frees space: [`Error::Stalled`] if that takes too long, [`Error::Full`] if
    /// it is impossible.
    ///
    /// # Durability
    /// The deletion survives a power cut when this returns.
    pub fn delete(&self, bucket: &str, key: &str) -> Result<bool> {
        self.delete_many(bucket, &[key]).pop().unwrap_or(Ok(false))
    }

    /// Deletes objects with one shared sync. Returns for each of them `true` if it existed.
    ///
    /// # Errors
    /// Like [`Store::delete`], for each key.
    ///
    /// # Durability
    /// The deletions survive a power cut when this returns.
    pub fn delete_many(&self, bucket: &str, keys: &[&str]) -> Vec<Result<bool>> {
        let deletion = |&key| Deletion { key, condition: None };
        self.delete_if(bucket, &keys.iter().map(deletion).collect::<Vec<_>>())
    }

    /// Deletes objects whose conditions hold, like [`Store::delete_many`]. The test of a condition
    /// and the deletion are atomic. The conditions are not tested if there is no object.
    ///
    /// # Errors
    /// Like [`Store::delete`], for each key; [`Error::PreconditionFailed`] if the condition does
    /// not hold, and [`Error::Damaged`] if the newest state of the object may be in a damaged
    /// place, so that the condition cannot be tested.
    ///
    /// # Durability
    /// The deletions survive a power cut when this returns.
    pub fn delete_if(&self, bucket: &str, deletions: &[Deletion<'_>]) -> Vec<Result<bool>> {
        let mut outcomes = self.try_delete(bucket, deletions);
        let is_full = |outcome: &Result<bool>| matches!(outcome, Err(Error::Full { .. }));
        for (deletion, outcome) in deletions.iter().zip(&mut outcomes).filter(|(_, o)| is_full(o)) {
            let again = || self.try_delete(bucket, &[*deletion]).pop().unwrap_or(Ok(false));
            *outcome = self.inner.with_space(again);
        }
        // A deletion that finds no object may repeat one that the copy has not confirmed.
        self.inner.replicate_batch(&mut outcomes, |_existed| true);
        outcomes
    }

    fn try_delete(&self, bucket: &str, deletions: &[Deletion<'_>]) -> Vec<Result<bool>> {
        let inner = &*self.inner;
        let _writer = match inner.enter(bucket) {
            Ok(entered) => entered,
            Err(_) => return deletions.iter().map(|_| Err(inner.missing_bucket(bucket))).collect(),
        };
        // A thread that locks several keys locks them in order and none twice, which prevents
        // deadlocks.
        let mut keys: Vec<_> = deletions.iter().map(|deletion| deletion.key).collect();
        keys.sort_unstable();
        keys.dedup();
        let _locks: Vec<_> = keys.iter().map(|key| inner.keys.lock(bucket, key)).collect();
        let mut appended = HashSet::new();
        let tombstones: Vec<_> = deletions
            .iter()
            .map(|deletion| {
                // A repeated key no longer exists.
                if appended.contains(deletion.key) {
                    return Ok(None);
                }
                let tombstone = self.append_tombstone(bucket, deletion)?;
                if tombstone.is_some() {
                    appended.insert(deletion.key);
                }
                Ok(tombstone)
            })
            .collect();
        let finish = |tombstone: Result<Option<(Change, Ticket)>>| match tombstone? {
            Some((change, ticket)) => self.deleted(change, ticket.wait()?),
            None => Ok(false),
        };
        tombstones.into_iter().map(finish).collect()
    }

    /// Appends the tombstone of an object that exists, or may exist in a damaged place. Tests the
    /// condition first. The caller has locked the key.
    fn append_tombstone(
        &self,
        bucket: &str,
        deletion: &Deletion<'_>,
    ) -> Result<Option<(Change, Ticket)>> {
        let inner = &*self.inner;
        let key = deletion.key;
        let current = inner.find(bucket, key)?;
        let newest = current.as_ref().map(|entry| entry.at.lsn);
        let doubt = inner.index.read().doubt(bucket, key, newest);
        match (&current, doubt, deletion.condition) {
            (None, None, _) => return Ok(None),
            (_, Some(error), Some(_)) => return Err(error),
            (Some(entry), None, Some(condition)) if !condition(&entry.info(key)) => {
                return Err(Error::PreconditionFailed);
            }
            _ => {}
        }
        let mut head = inner.head(Kind::Tombstone, bucket, key);
        head.version = inner.clock.next();
        let ticket = inner.append(&head.encode(&Attributes::new()), &[], Room::Reserve)?;
        Ok(Some((Change { head, replaces: current.map(Replaced::from) }, ticket)))
    }

    fn deleted(&self, change: Change, at: Position) -> Result<bool> {
        self.apply(vec![change], at);
        Counters::count(&self.inner.counters.deletes);
        Ok(true)
    }
}
