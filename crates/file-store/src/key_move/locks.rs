//! The locks of a step of a move, in both stores.

use crate::error::{Error, Result};
use crate::inner::Inner;
use crate::key_move::state::KeyName;
use crate::locks::KeyGuard;
use crate::object::{TargetBucket, Versioning};
use crate::writers::BucketWriter;

/// The locks of a key in two stores, and the registrations of a writer in both.
#[derive(Debug)]
pub(super) struct LockedPair {
    // Dropped first, as each writer releases its key before it leaves.
    _keys: [KeyGuard; 2],
    _writers: [BucketWriter; 2],
}

/// Enters a bucket of both stores like any writer, and locks the key in `from` and then in `to`.
///
/// This cannot deadlock. A thread that waits for one gate holds no other one. A thread that waits
/// for a key holds smaller keys only, or the same key in the store from which it is moved; one key
/// moves in one direction at a time. So the threads that wait for one another wait for ever greater
/// keys, or for the same key in ever later stores, and the last of them waits for the disk.
///
/// # Errors
/// [`Error::NoSuchBucket`]; [`Error::InvalidBucketState`] if the stores do not have the same bucket;
/// [`Error::Damaged`].
pub(super) fn lock_pair(from: &Inner, to: &Inner, name: KeyName<'_>) -> Result<LockedPair> {
    let KeyName { bucket, key } = name;
    let writers = enter_pair(from, to, bucket)?;
    check_same_bucket(from, to, bucket)?;
    let keys = [from, to].map(|inner| inner.keyspace.keys.lock(bucket, key));
    Ok(LockedPair { _keys: keys, _writers: writers })
}

/// Enters the bucket in both stores. Waits for a gate only while it holds no other one: a gate that
/// another thread waits to close admits nobody, so two moves in opposite directions, and two threads
/// that close the gates, would otherwise wait for one another.
fn enter_pair(from: &Inner, to: &Inner, bucket: &str) -> Result<[BucketWriter; 2]> {
    let target = TargetBucket::from(bucket);
    loop {
        let entered = from.keyspace.enter(target)?;
        if let Some(other) = to.keyspace.try_enter(target)? {
            return Ok([entered, other]);
        }
        drop(entered);
        let entered = to.keyspace.enter(target)?;
        if let Some(other) = from.keyspace.try_enter(target)? {
            return Ok([other, entered]);
        }
    }
}

/// Fails if the bucket in `to` cannot have what the bucket in `from` has. Both were entered, so that
/// their states stay.
fn check_same_bucket(from: &Inner, to: &Inner, bucket: &str) -> Result<()> {
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
