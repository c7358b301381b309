//! Deletes objects.

use std::collections::HashSet;

use haul_append_log::{Position, SpacePriority, Ticket};

use crate::counters::Counters;
use crate::deletion::batch::delete_with_versions;
use crate::deletion::request::Deletion;
use crate::error::{Error, Result};
use crate::events::append::event_changes;
use crate::format::{Head, Kind};
use crate::index::entry::{Change, Replaced};
use crate::index::quotas::Reserved;
use crate::needles::apply::AppendedRecord;
use crate::object::{Deleted, VersionId, Versioning};
use crate::replication::confirmation::acknowledge_batch;
use crate::store::Store;

/// A deletion that is complete, or that waits for the sync of its tombstone.
enum Started {
    Done(Deleted),
    Appended(Vec<Change>, Ticket),
}

impl Store {
    /// Deletes an object. Returns `true` if it existed, or may have existed in a damaged place. In
    /// a bucket with versions, retains it and creates a delete marker.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`], [`Error::NotReplicated`]. On a full disk the call succeeds, or
    /// waits until compaction frees space: [`Error::Stalled`] if that takes too long,
    /// [`Error::Full`] if it is impossible.
    ///
    /// # Durability
    /// The deletion survives a power cut when this returns.
    pub fn delete(&self, bucket: &str, key: &str) -> Result<bool> {
        self.delete_many(bucket, &[key]).pop().unwrap_or(Ok(false))
    }

    /// Deletes objects with one shared sync. For each object, returns `true` if it existed.
    ///
    /// # Errors
    /// Fails like [`Store::delete`], for each key.
    ///
    /// # Durability
    /// The deletions survive a power cut when this returns.
    pub fn delete_many(&self, bucket: &str, keys: &[&str]) -> Vec<Result<bool>> {
        let deletions: Vec<_> = keys.iter().map(|key| Deletion::of(key)).collect();
        let outcomes = self.delete_objects(bucket, &deletions).into_iter();
        outcomes.map(|outcome| Ok(outcome?.existed)).collect()
    }

    /// Deletes an object like [`Store::delete`], or one version of it: see
    /// [`Store::delete_objects`].
    ///
    /// # Errors
    /// Fails like [`Store::delete_objects`].
    ///
    /// # Durability
    /// The deletion survives a power cut when this returns.
    pub fn delete_object(
        &self,
        bucket: &str,
        key: &str,
        version: Option<VersionId>,
    ) -> Result<Deleted> {
        let deletion = Deletion { version, ..Deletion::of(key) };
        self.delete_objects(bucket, &[deletion]).pop().unwrap_or_else(|| Ok(Deleted::default()))
    }

    /// Deletes objects and versions whose conditions hold. The test of a condition and the deletion
    /// are atomic. The conditions are not tested if there is no object.
    ///
    /// In a bucket with versions, deleting an object retains it and creates a delete marker, which
    /// makes the key absent. Deleting the newest version makes the next older one current.
    ///
    /// The deletions share one sync, or more if the retained objects fill up the log's buffer. In a
    /// bucket with versions, a key's deletions are executed in their order, and need a sync each,
    /// except that up to 64 different versions that follow one another are deleted together.
    ///
    /// # Errors
    /// Fails like [`Store::delete`], for each deletion; [`Error::PreconditionFailed`] if the
    /// condition does not hold; [`Error::Damaged`] if the condition cannot be tested, because the
    /// newest state may be in a damaged place, if an object cannot be retained, because it cannot
    /// be read, or while damage may hide versions; [`Error::Locked`] for a version that a lock
    /// protects. In a bucket with versions, [`Error::Full`] if there is no space for a delete
    /// marker, for the retained object, or for the version that becomes current.
    ///
    /// # Durability
    /// The deletions survive a power cut when this returns.
    pub fn delete_objects(&self, bucket: &str, deletions: &[Deletion<'_>]) -> Vec<Result<Deleted>> {
        let mut outcomes = self.try_delete(bucket, deletions);
        let is_full = |outcome: &Result<Deleted>| matches!(outcome, Err(Error::Full { .. }));
        for (deletion, outcome) in deletions.iter().zip(&mut outcomes).filter(|(_, o)| is_full(o)) {
            let again = || {
                let outcome = self.try_delete(bucket, &[*deletion]).pop();
                outcome.unwrap_or_else(|| Ok(Deleted::default()))
            };
            *outcome = self.inner.with_space(again);
        }
        // A deletion that finds no object may repeat one that the copy has not confirmed.
        acknowledge_batch(&self.inner, &mut outcomes);
        outcomes
    }

    fn try_delete(&self, bucket: &str, deletions: &[Deletion<'_>]) -> Vec<Result<Deleted>> {
        let inner = &*self.inner;
        let _writer = match inner.keyspace.enter(bucket) {
            Ok(entered) => entered,
            Err(_) => {
                return deletions
                    .iter()
                    .map(|_| Err(inner.keyspace.missing_bucket(bucket)))
                    .collect();
            }
        };
        // A thread that locks several keys locks them in order and none twice, which prevents
        // deadlocks.
        let mut keys: Vec<_> = deletions.iter().map(|deletion| deletion.key).collect();
        keys.sort_unstable();
        keys.dedup();
        let _locks: Vec<_> = keys.iter().map(|key| inner.keyspace.keys.lock(bucket, key)).collect();
        let versioning = match inner.keyspace.versioning(bucket) {
            Ok(versioning) => versioning,
            // Each outcome needs an error of its own.
            Err(_) => {
                return deletions
                    .iter()
                    .map(|_| Err(inner.keyspace.unknown_versioning(bucket)))
                    .collect();
            }
        };
        match versioning {
            Versioning::Off => self.delete_without_versions(bucket, deletions),
            _ => delete_with_versions(inner, bucket, deletions, versioning),
        }
    }

    /// Executes deletions in a bucket without versions. The caller has locked the keys.
    fn delete_without_versions(
        &self,
        bucket: &str,
        deletions: &[Deletion<'_>],
    ) -> Vec<Result<Deleted>> {
        let mut appended = HashSet::new();
        let start = |deletion: &Deletion<'_>| {
            let is_version = matches!(deletion.version, Some(VersionId::Id(_)));
            // A repeated key no longer exists.
            if is_version || appended.contains(deletion.key) {
                return Ok(Started::Done(Deleted::default()));
            }
            Ok(match self.append_tombstone(bucket, deletion)? {
                Some((changes, ticket)) => {
                    appended.insert(deletion.key.to_owned());
                    Started::Appended(changes, ticket)
                }
                None => Started::Done(Deleted::default()),
            })
        };
        let started: Vec<Result<Started>> = deletions.iter().map(start).collect();
        let finish = |(deletion, started): (&Deletion<'_>, Result<Started>)| match started? {
            Started::Done(deleted) => Ok(deleted),
            Started::Appended(changes, ticket) => {
                self.deleted(changes, ticket.wait()?);
                let version_id = deletion.version;
                Ok(Deleted { existed: true, version_id, is_delete_marker: false })
            }
        };
        deletions.iter().zip(started).map(finish).collect()
    }

    /// Appends a tombstone for an object that exists, or may exist in a damaged place. Tests the
    /// condition first. The caller has locked the key.
    fn append_tombstone(
        &self,
        bucket: &str,
        deletion: &Deletion<'_>,
    ) -> Result<Option<(Vec<Change>, Ticket)>> {
        let inner = &*self.inner;
        let key = deletion.key;
        let current = inner.find(bucket, key)?;
        let newest = current.as_ref().map(|entry| entry.at.lsn);
        let corruption = inner.keyspace.index.read().possible_corruption(bucket, key, newest);
        match (&current, corruption) {
            (None, None) => return Ok(None),
            (_, Some(error)) if deletion.condition.is_some() => return Err(error),
            (Some(entry), _) => deletion.check(|| entry.info(key))?,
            (None, Some(_)) => {}
        }
        let mut head = Head::new(Kind::Tombstone, bucket, key);
        head.version = inner.keyspace.clock.next();
        let info = current.as_ref().map(|entry| entry.info(key));
        let info = || info.unwrap_or_else(|| head.info());
        let events = event_changes(inner, deletion.event, bucket, info);
        let (replaces, reserved) = (current.map(Replaced::from), Reserved::nothing());
        let change = Change { head, replaces, reserved, event: None };
        let changes: Vec<Change> = std::iter::once(change).chain(events).collect();
        let AppendedRecord { changes, ticket } =
            inner.append_heads(changes, SpacePriority::Reserve)?;
        Ok(Some((changes, ticket)))
    }

    fn deleted(&self, changes: Vec<Change>, at: Position) {
        self.apply(changes, at);
        Counters::count(&self.inner.counters.local().deletes);
    }
}
