//! The locks of a step of a move.
//!
//! A step uses two disks, of which one may hang. It holds the gate of a store only while it changes
//! that store, and reads or writes the other one without it: who waits to close a gate keeps all
//! writers of the store waiting. The key is locked in the store from which it is moved during the
//! whole step. No write of the pool reaches a key that is being moved before it is moved, so that
//! this lock decides.
//!
//! This cannot deadlock. A thread of a move that holds a lock never waits for a gate: it tries, and
//! otherwise releases all before it waits. It waits for the key in the other store while it holds it
//! in the one from which it is moved, and one key moves in one direction at a time. All other threads
//! that wait for a key hold smaller keys of the same store only. So the threads that wait for one
//! another wait for ever greater keys, or for the same key in ever later stores, and the last of them
//! waits for a disk.

use crate::error::{Error, Result};
use crate::inner::Inner;
use crate::key_move::state::{KeyName, KeyState, read_state};
use crate::locks::KeyGuard;
use crate::object::{TargetBucket, Versioning};
use crate::writers::BucketWriter;

/// Locks a key in the store from which it is moved, without its gate.
///
/// # Errors
/// [`Error::NoSuchBucket`]; [`Error::InvalidBucketState`] if the stores do not have the same bucket;
/// [`Error::Damaged`].
pub(super) fn lock_source(from: &Inner, to: &Inner, name: KeyName<'_>) -> Result<KeyGuard> {
    let KeyName { bucket, key } = name;
    from.keyspace.index.read().check_bucket(bucket)?;
    to.keyspace.index.read().check_bucket(bucket)?;
    check_same_bucket(from, to, bucket)?;
    Ok(from.keyspace.keys.lock(bucket, key))
}

/// Reads what the other store has under a key. It may change afterwards.
///
/// # Errors
/// Fails like [`read_state`].
pub(super) fn peek_state(to: &Inner, name: KeyName<'_>) -> Result<KeyState> {
    let _key = to.keyspace.keys.lock(name.bucket, name.key);
    read_state(to, name)
}

/// Enters a bucket like any writer; `None` if the gate is closed, for which the caller may not wait
/// while it holds the lock of a key.
///
/// # Errors
/// [`Error::NoSuchBucket`]; [`Error::Damaged`].
pub(super) fn try_enter(inner: &Inner, name: KeyName<'_>) -> Result<Option<BucketWriter>> {
    inner.keyspace.try_enter(TargetBucket::from(name.bucket))
}

/// Waits until the gate is open. The caller holds no lock.
///
/// # Errors
/// Fails like [`try_enter`].
pub(super) fn wait_for_gate(inner: &Inner, name: KeyName<'_>) -> Result<()> {
    inner.keyspace.enter(TargetBucket::from(name.bucket)).map(drop)
}

/// Fails if the bucket in `to` cannot have what the bucket in `from` has. That of a bucket that was
/// entered, or of a key that is locked, stays.
pub(super) fn check_same_bucket(from: &Inner, to: &Inner, bucket: &str) -> Result<()> {
    let differs = |why| Err(Error::InvalidBucketState { bucket: bucket.to_owned(), why });
    let id = |inner: &Inner| inner.keyspace.index.read().bucket_id(bucket);
    if id(from) != id(to) {
        return differs("the stores have different buckets with this name");
    }
    let has_versions = |versioning| versioning != Versioning::Off;
    let needed = has_versions(from.keyspace.versioning(bucket)?);
    if needed && !has_versions(to.keyspace.versioning(bucket)?) {
        return differs("versioning was not enabled in the store to which a key is moved");
    }
    if from.keyspace.may_have_locks(bucket) && !to.keyspace.has_object_lock(bucket) {
        return differs("object lock is not enabled in the store to which a key is moved");
    }
    Ok(())
}
