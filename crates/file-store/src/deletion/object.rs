//! Deletion of objects.

use std::collections::HashMap;

use haul_append_log::{Position, Room, Ticket};

use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::format::Kind;
use crate::index::entry::{Change, Replaced};
use crate::object::{Attributes, Versioning};
use crate::store::Store;

impl Store {
    /// Deletes an object. Returns `true` if it existed, or may have existed in a damaged place. In a
    /// bucket with versions, retains it and creates a delete marker; see
    /// [`Store::delete_object`].
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
        let mut outcomes = self.try_delete_many(bucket, keys);
        let is_full = |outcome: &Result<bool>| matches!(outcome, Err(Error::Full { .. }));
        for (key, outcome) in keys.iter().zip(&mut outcomes).filter(|(_, o)| is_full(o)) {
            let again = || self.try_delete_many(bucket, &[key]).pop().unwrap_or(Ok(false));
            *outcome = self.inner.with_space(again);
        }
        // A deletion that finds no object may repeat one that the copy has not confirmed.
        self.inner.replicate_batch(&mut outcomes, |_existed| true);
        outcomes
    }

    fn try_delete_many(&self, bucket: &str, keys: &[&str]) -> Vec<Result<bool>> {
        let inner = &*self.inner;
        let _writer = match inner.enter(bucket) {
            Ok(entered) => entered,
            Err(_) => return keys.iter().map(|_| Err(inner.missing_bucket(bucket))).collect(),
        };
        // A thread that locks several keys locks them in order and none twice, which prevents
        // deadlocks.
        let mut sorted = keys.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let _turns: Vec<_> = sorted.iter().map(|key| inner.keys.lock(bucket, key)).collect();
        let versioning = match inner.versioning(bucket) {
            Ok(versioning) => versioning,
            // Each outcome needs an error of its own.
            Err(_) => return keys.iter().map(|_| Err(inner.unknown_versioning(bucket))).collect(),
        };
        if versioning != Versioning::Off {
            let delete = |key| (key, inner.delete_current(bucket, key, versioning));
            let mut outcomes: HashMap<_, _> = sorted.into_iter().map(delete).collect();
            let existed = |key| outcomes.remove(key).map_or(Ok(false), |it| Ok(it?.existed));
            return keys.iter().map(existed).collect();
        }
        let tickets: Vec<_> = sorted.iter().map(|key| self.append_tombstone(bucket, key)).collect();
        let deleted = sorted.into_iter().zip(tickets).map(|(key, appended)| {
            let outcome = appended.and_then(|appended| match appended {
                Some((change, ticket)) => self.deleted(change, ticket.wait()?),
                None => Ok(false),
            });
            (key, outcome)
        });
        let mut outcomes: HashMap<_, _> = deleted.collect();
        // A repeated key no longer exists.
        keys.iter().map(|key| outcomes.remove(key).unwrap_or(Ok(false))).collect()
    }

    /// Appends the tombstone of an object that exists, or may exist in a damaged place.
    fn append_tombstone(&self, bucket: &str, key: &str) -> Result<Option<(Change, Ticket)>> {
        let inner = &*self.inner;
        let current = inner.find(bucket, key)?;
        if current.is_none() && inner.index.read().doubt(bucket, key, None).is_none() {
            return Ok(None);
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
