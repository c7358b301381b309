//! The check that each removal of a version passes.

use std::borrow::Cow;

use crate::buckets::settings::bucket_settings;
use crate::error::{Error, Result};
use crate::index::entry::Entry;
use crate::inner::Inner;
use crate::keys::check_attributes;
use crate::object::Attributes;
use crate::object_lock::bucket::default_retention;
use crate::object_lock::lock::ObjectLock;

/// Fails if a lock protects a version. Each function that removes a version calls this first, and
/// holds the key's lock until the version is removed.
///
/// # Errors
/// [`Error::Locked`]; [`Error::Damaged`] if the version's attributes cannot be read, so that it may
/// be locked.
pub(crate) fn check_unlocked(
    inner: &Inner,
    bucket: &str,
    key: &str,
    entry: &Entry,
    bypass_governance: bool,
) -> Result<()> {
    // A delete marker has no content to protect, and no attributes.
    if !inner.keyspace.may_have_locks(bucket) || entry.is_delete_marker() {
        return Ok(());
    }
    let lock = inner.read_attributes(entry.at).and_then(|found| ObjectLock::of(&found));
    let why = match lock {
        Ok(lock) => lock.protection(inner.keyspace.clock.now_ms(), bypass_governance),
        Err(Error::Invalid { what }) => Some(what),
        Err(error) => return Err(error),
    };
    why.map_or(Ok(()), |why| Err(locked(bucket, key, entry, why)))
}

/// Returns a new object's attributes, with the bucket's default retention added if they have none.
/// A writer has entered the bucket.
///
/// # Errors
/// [`Error::NoObjectLock`] if they have a lock, and locks are not enabled in the bucket;
/// [`Error::Invalid`] if the lock or the default retention is malformed; [`Error::Damaged`] if the
/// default retention cannot be read.
pub(crate) fn attributes_of_new<'a>(
    inner: &Inner,
    bucket: &str,
    attributes: &'a Attributes,
) -> Result<Cow<'a, Attributes>> {
    if !inner.keyspace.has_object_lock(bucket) {
        if ObjectLock::is_in(attributes) && !inner.keyspace.may_have_locks(bucket) {
            return Err(Error::NoObjectLock { bucket: bucket.to_owned() });
        }
        return Ok(Cow::Borrowed(attributes));
    }
    let mut lock = ObjectLock::of(attributes)?;
    if lock.retention.is_some() {
        return Ok(Cow::Borrowed(attributes));
    }
    let Some(default) = default_retention(&*bucket_settings(inner, bucket)?)? else {
        return Ok(Cow::Borrowed(attributes));
    };
    lock.retention = Some(default.starting_at(inner.keyspace.clock.now_ms()));
    let mut attributes = attributes.clone();
    lock.set_in(&mut attributes);
    check_attributes(&attributes)?;
    Ok(Cow::Owned(attributes))
}

/// Returns the error for a version that a lock protects.
pub(super) fn locked(bucket: &str, key: &str, entry: &Entry, why: String) -> Error {
    let version = entry.version_id();
    Error::Locked { bucket: bucket.to_owned(), key: key.to_owned(), version, why }
}
