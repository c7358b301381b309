//! Storing many objects with shared syncs.
//!
//! Each call divides its objects into batches of consecutive objects with distinct keys. The small
//! objects in a batch are hashed together, appended to the log in order, and wait for one sync, or
//! for more if the log's buffer fills up in between.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use haul_append_log::Ticket;
use haul_md5_lanes::Lanes;

use crate::access::put::append_object;
use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::format::{Head, Kind, block_checksums};
use crate::index::entry::{Change, DurableRecord};
use crate::keys::{check_attributes, check_key};
use crate::object::{Attributes, ObjectInfo, Precondition, Usage, Versioning};
use crate::replication::confirmation::acknowledge_batch;
use crate::store::Store;

/// The maximum number of objects in a batch. Their keys are locked at the same time.
const BATCH_OBJECTS: usize = 4096;

/// The maximum number of objects that are applied under one index lock, during which readers wait.
const APPLY_OBJECTS: usize = 256;

/// An object for [`Store::put_many`].
#[derive(Debug, Clone, Copy)]
pub struct NewObject<'a> {
    /// The key, 1 to [`crate::KEY_BYTES_MAX`] bytes.
    pub key: &'a str,
    /// The content.
    pub bytes: &'a [u8],
    /// The attributes, at most [`crate::ATTRIBUTE_BYTES_MAX`] bytes.
    pub attributes: &'a Attributes,
    /// The condition under which the object is stored.
    pub precondition: &'a Precondition,
}

/// A small object of a batch, ready to be appended.
struct Draft<'a> {
    /// Its position in the batch.
    number: usize,
    head: Head,
    object: &'a NewObject<'a>,
}

/// A needle that was appended and may not be durable yet.
struct Appended {
    number: usize,
    change: Change,
    ticket: Ticket,
}

impl Store {
    /// Stores objects, each of which replaces its key's existing object. Returns the outcomes in
    /// the order of `objects`. Small objects share their syncs: one sync for up to 4096 consecutive
    /// objects with less than [`crate::Options::big_object_bytes`] in total. Stores an object of
    /// that size or more like [`Store::put`].
    ///
    /// Each object is stored or rejected independently. If a key is repeated, each object replaces
    /// the previous one and needs its own sync.
    ///
    /// # Errors
    /// Fails like [`Store::put`], for each object. If the disk is full for a small object, all
    /// later objects are rejected, too.
    ///
    /// # Durability
    /// The objects whose outcome is `Ok` survive a power cut when this returns. No object is
    /// visible before it is durable. After a crash during the call, a prefix of the objects is
    /// stored.
    pub fn put_many(&self, bucket: &str, objects: &[NewObject<'_>]) -> Vec<Result<ObjectInfo>> {
        let mut outcomes = Vec::with_capacity(objects.len());
        let mut rest = objects;
        while let Some(first) = rest.first() {
            let small = batch_len(rest, self.inner.options.big_object_bytes);
            let (batch, behind) = rest.split_at(small.max(1));
            rest = behind;
            if small == 0 {
                let NewObject { key, bytes, attributes, precondition } = *first;
                let stored = self.put_locally(bucket.into(), key, bytes, attributes, precondition);
                outcomes.push(stored.map(|stored| stored.info));
            } else if let Some(refusal) = self.put_batch(bucket, batch, &mut outcomes) {
                outcomes.extend(rest.iter().map(|_| Err(refusal.error())));
                break;
            }
        }
        acknowledge_batch(&self.inner, &mut outcomes);
        outcomes
    }

    /// Stores a batch and adds the outcomes to `outcomes`. If the disk is full, returns the reason
    /// to reject all later objects.
    fn put_batch(
        &self,
        bucket: &str,
        batch: &[NewObject<'_>],
        outcomes: &mut Vec<Result<ObjectInfo>>,
    ) -> Option<Refusal> {
        let mut outcome_of: Vec<Option<Result<ObjectInfo>>> =
            batch.iter().map(validation_error).collect();
        let mut drafts = self.drafts(bucket, batch, &outcome_of);
        let bytes = |draft: &Draft<'_>| (draft.head.head_bytes() + draft.object.bytes.len()) as u64;
        let inner = &*self.inner;
        inner.maintenance.admission.admit(drafts.iter().map(bytes).sum());
        let stored = inner.with_space(|| self.try_put_batch(bucket, &mut drafts, &mut outcome_of));
        let refusal = stored.err().map(Refusal::from);
        for draft in drafts {
            outcome_of[draft.number] = refusal.as_ref().map(|refusal| Err(refusal.error()));
        }
        outcomes.extend(outcome_of.into_iter().flatten());
        refusal
    }

    /// Returns the drafts of the objects that have no outcome yet. Their digests are computed
    /// together.
    fn drafts<'a>(
        &self,
        bucket: &str,
        batch: &'a [NewObject<'a>],
        outcome_of: &[Option<Result<ObjectInfo>>],
    ) -> VecDeque<Draft<'a>> {
        let chosen: Vec<usize> = (0..batch.len()).filter(|at| outcome_of[*at].is_none()).collect();
        let contents: Vec<&[u8]> = chosen.iter().map(|at| batch[*at].bytes).collect();
        let digests = Lanes::detect().digest_many(&contents);
        let draft = |(number, md5): (usize, [u8; 16])| {
            let object = &batch[number];
            let mut head = Head::new(Kind::Object, bucket, object.key);
            head.bytes = object.bytes.len() as u64;
            head.etag.md5 = md5;
            head.blocks = block_checksums(object.bytes);
            Draft { number, head, object }
        };
        chosen.into_iter().zip(digests).map(draft).collect()
    }

    /// Stores the objects of `drafts`, which have distinct keys, and removes those with an outcome.
    ///
    /// 1. Locks the keys in order. For each object, looks up the current one, tests the
    ///    precondition, and appends the needle to the log. After a crash the log has a prefix of
    ///    the needles.
    /// 2. Once all needles are durable, applies them to the index, which makes them visible.
    ///
    /// # Errors
    /// [`Error::Full`] if the log has no space for the needle of the first remaining object.
    fn try_put_batch(
        &self,
        bucket: &str,
        drafts: &mut VecDeque<Draft<'_>>,
        outcome_of: &mut [Option<Result<ObjectInfo>>],
    ) -> Result<()> {
        let inner = &*self.inner;
        let Ok(writer) = inner.keyspace.enter(bucket) else {
            for draft in drafts.drain(..) {
                outcome_of[draft.number] = Some(Err(inner.keyspace.missing_bucket(bucket)));
            }
            return Ok(());
        };
        if inner.keyspace.versioning(bucket)? != Versioning::Off {
            drop(writer);
            // Retaining an object waits for a sync.
            for draft in drafts.drain(..) {
                let NewObject { key, bytes, attributes, precondition } = *draft.object;
                let stored = self.put_locally(bucket.into(), key, bytes, attributes, precondition);
                let outcome = stored.map(|stored| stored.info);
                outcome_of[draft.number] = Some(outcome);
            }
            return Ok(());
        }
        let mut keys: Vec<&str> = drafts.iter().map(|draft| draft.object.key).collect();
        // A thread that locks several keys locks them in order and none twice, which prevents
        // deadlocks.
        keys.sort_unstable();
        let _locked: Vec<_> =
            keys.iter().map(|key| inner.keyspace.keys.lock(bucket, key)).collect();
        let (mut appended, mut full) = (Vec::with_capacity(drafts.len()), None);
        while let Some(mut draft) = drafts.pop_front() {
            let NewObject { bytes, attributes, precondition, .. } = *draft.object;
            let added = Usage { bytes: draft.head.bytes, objects: 1 };
            let stored = inner.keyspace.reserve(bucket, added).and_then(|reserved| {
                let head = &mut draft.head;
                let (replaces, ticket) =
                    append_object(inner, head, attributes, precondition, bytes)?;
                Ok((replaces, ticket, reserved))
            });
            match stored {
                Ok((replaces, ticket, reserved)) => {
                    let change = Change { head: draft.head, replaces, reserved, event: None };
                    appended.push(Appended { number: draft.number, change, ticket });
                }
                Err(error @ Error::Full { .. }) => {
                    drafts.push_front(draft);
                    full = Some(error);
                    break;
                }
                Err(refused) => outcome_of[draft.number] = Some(Err(refused)),
            }
        }
        self.wait_and_apply(appended, outcome_of);
        drop(writer);
        full.map_or(Ok(()), Err)
    }

    /// Waits until the needles are durable, and applies them to the index.
    fn wait_and_apply(
        &self,
        appended: Vec<Appended>,
        outcome_of: &mut [Option<Result<ObjectInfo>>],
    ) {
        let mut appended = appended.into_iter().peekable();
        while appended.peek().is_some() {
            let mut durable = Vec::with_capacity(APPLY_OBJECTS.min(appended.len()));
            for Appended { number, change, ticket } in appended.by_ref().take(APPLY_OBJECTS) {
                outcome_of[number] = Some(match ticket.wait() {
                    Ok(at) => {
                        let info = change.head.info();
                        durable.push(DurableRecord { at, change, others: Vec::new() });
                        Ok(info)
                    }
                    Err(error) => Err(error.into()),
                });
            }
            Counters::add(&self.inner.counters.local().puts, durable.len() as u64);
            self.inner.apply_records(durable);
        }
    }
}

/// Returns an error for an object that the store rejects in any state.
fn validation_error(object: &NewObject<'_>) -> Option<Result<ObjectInfo>> {
    check_key(object.key).and_then(|()| check_attributes(object.attributes)).err().map(Err)
}

/// Returns the length of the longest prefix that is a batch of small objects with distinct keys.
fn batch_len(objects: &[NewObject<'_>], big_object_bytes: u64) -> usize {
    let (mut bytes, mut keys) = (0, HashSet::new());
    for (number, object) in objects.iter().take(BATCH_OBJECTS).enumerate() {
        let length = object.bytes.len() as u64;
        bytes += length;
        if length >= big_object_bytes || bytes > big_object_bytes || !keys.insert(object.key) {
            return number;
        }
    }
    objects.len().min(BATCH_OBJECTS)
}

/// The reason to reject all later objects in a call.
enum Refusal {
    Full(Arc<dyn std::error::Error + Send + Sync>),
    Stalled(Duration),
}

impl Refusal {
    /// Returns a new error for one rejected object.
    fn error(&self) -> Error {
        match self {
            Self::Full(source) => Error::Full { source: Box::new(Arc::clone(source)) },
            Self::Stalled(waited) => Error::Stalled { waited: *waited },
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::Full { source } => Self::Full(source.into()),
            Error::Stalled { waited } => Self::Stalled(waited),
            other => Self::Full(Arc::new(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the length of the first batch of objects with these keys and lengths.
    fn batch(objects: &[(&'static str, usize)]) -> usize {
        let (bytes, attributes) = ([0; 100], Attributes::new());
        let object = |(key, length): &(&'static str, usize)| NewObject {
            key,
            bytes: &bytes[..*length],
            attributes: &attributes,
            precondition: &Precondition::None,
        };
        let objects: Vec<_> = objects.iter().map(object).collect();
        batch_len(&objects, 100)
    }

    #[test]
    fn batch_ends_at_repeated_key_big_object_or_byte_limit() {
        assert_eq!(batch(&[]), 0);
        assert_eq!(batch(&[("a", 99), ("b", 1), ("c", 0)]), 3);
        assert_eq!(batch(&[("a", 99), ("b", 2)]), 1);
        assert_eq!(batch(&[("a", 1), ("b", 1), ("a", 1)]), 2);
        assert_eq!(batch(&[("a", 0), ("b", 100)]), 1);
        assert_eq!(batch(&[("a", 100), ("b", 1)]), 0);
        assert_eq!(batch(&[("a", 1), ("", 1), ("", 1)]), 2);
    }

    #[test]
    fn batch_has_a_maximum_number_of_objects() {
        let keys: Vec<String> = (0..BATCH_OBJECTS + 1).map(|n| n.to_string()).collect();
        let (attributes, precondition) = (&Attributes::new(), &Precondition::None);
        let object = |key| NewObject { key, bytes: b"", attributes, precondition };
        let objects: Vec<_> = keys.iter().map(|key| object(key)).collect();
        assert_eq!(batch_len(&objects, 100), BATCH_OBJECTS);
    }
}
