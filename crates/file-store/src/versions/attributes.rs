//! Changes the attributes of objects and versions.

use crate::error::{Error, Result};
use crate::events::append::event_changes;
use crate::index::entry::{Change, Entry, Replaced};
use crate::index::quotas::Reserved;
use crate::index::version_names::{VersionName, versions_bucket};
use crate::index::version_rows::VersionRow;
use crate::inner::Inner;
use crate::keys::check_attributes;
use crate::needles::lookup::no_such_key;
use crate::needles::stored::{append_stored, read_stored};
use crate::object::{Attributes, ObjectInfo, TargetBucket, VersionId, Versioning};
use crate::object_lock::lock::ObjectLock;
use crate::replication::confirmation::acknowledge;
use crate::store::Store;
use crate::versions::read::version_name;
use crate::versions::retain::version_tombstone;

impl Store {
    /// Changes the attributes of a key's current object, or of a version, except its lock. `change`
    /// gets the present attributes, and no other change to the object takes effect between this
    /// call and the update. The object's ID, content and time stay, and no version is retained.
    /// Returns the object's description.
    ///
    /// `change` may be called again if the disk is full at first. It must not use the store.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`], [`Error::NoSuchKey`], [`Error::NoSuchVersion`],
    /// [`Error::IsDeleteMarker`], the error of `change`; otherwise fails like [`Store::put`].
    ///
    /// # Durability
    /// The attributes survive a power cut when this returns. A power cut before that leaves the
    /// previous or the new ones.
    pub fn update_attributes<'a>(
        &self,
        bucket: impl Into<TargetBucket<'a>>,
        key: &str,
        version: Option<VersionId>,
        change: &dyn Fn(&mut Attributes) -> Result<()>,
    ) -> Result<ObjectInfo> {
        let changed = |_: &Entry, stored: &Attributes| {
            let mut changed = stored.clone();
            change(&mut changed)?;
            ObjectLock::of(stored)?.set_in(&mut changed);
            Ok(changed)
        };
        self.change_attributes(bucket.into(), key, version, &changed)
    }

    /// Changes the attributes of a key's current object, or of a version, to those that `change`
    /// returns.
    pub(crate) fn change_attributes(
        &self,
        bucket: TargetBucket<'_>,
        key: &str,
        version: Option<VersionId>,
        change: &dyn Fn(&Entry, &Attributes) -> Result<Attributes>,
    ) -> Result<ObjectInfo> {
        let inner = &*self.inner;
        let set = || {
            let _writer = inner.keyspace.enter(bucket)?;
            let _lock = inner.keyspace.keys.lock(bucket.name, key);
            try_change_attributes(inner, bucket, key, version, change)
        };
        acknowledge(inner, inner.with_space(set))
    }
}

/// Appends an object's or a version's needle again, with other attributes.
fn try_change_attributes(
    inner: &Inner,
    target: TargetBucket<'_>,
    key: &str,
    version: Option<VersionId>,
    change: &dyn Fn(&Entry, &Attributes) -> Result<Attributes>,
) -> Result<ObjectInfo> {
    let bucket = target.name;
    let current = inner.find_certain(bucket, key)?;
    let is_current = |entry: &Entry| version.is_none_or(|version| entry.version_id() == version);
    let (stored_bucket, stored_key, entry) = match (current.filter(is_current), version) {
        (Some(entry), _) => (bucket.to_owned(), key.to_owned(), entry),
        (None, None) => return Err(no_such_key(bucket, key)),
        (None, Some(version)) => {
            let versions = versions_bucket(bucket);
            let (name, entry) = find_version(inner, bucket, key, version)?;
            (versions, name, entry)
        }
    };
    let mut stored = read_stored(inner, &stored_bucket, &stored_key)?;
    stored.attributes = change(&stored.entry, &stored.attributes)?;
    check_attributes(&stored.attributes)?;
    let info = stored.entry.info(key);
    let is_current = stored_bucket == bucket;
    let copy = if is_current { copy_tombstone(inner, bucket, key, &stored.entry)? } else { None };
    let events = event_changes(inner, target.event, bucket, || info.clone());
    let (replaces, others) =
        (Some(Replaced::from(entry)), copy.into_iter().chain(events).collect());
    let to = (&*stored_bucket, &*stored_key);
    let record = append_stored(inner, &stored, to, replaces, others, Reserved::nothing())?;
    inner.finish_record(record)?;
    Ok(info)
}

/// Returns a tombstone for the current object's copy among the versions, if there is one, because
/// the copy would have the earlier attributes.
fn copy_tombstone(
    inner: &Inner,
    bucket: &str,
    key: &str,
    current: &Entry,
) -> Result<Option<Change>> {
    if inner.keyspace.versioning(bucket)? == Versioning::Off {
        return Ok(None);
    }
    let (version, is_null) = (current.version, !current.is_versioned);
    let name = VersionName { version, is_null };
    let copy = inner.find_certain(&versions_bucket(bucket), &name.key_in_bucket(key))?;
    Ok(copy.map(|entry| version_tombstone(inner, bucket, key, VersionRow { name, entry })))
}

/// Finds a version of a locked key in the internal bucket that is not a delete marker. Returns its
/// key there.
fn find_version(
    inner: &Inner,
    bucket: &str,
    key: &str,
    version: VersionId,
) -> Result<(String, Entry)> {
    let (bucket_name, key_name) = (bucket.to_owned(), key.to_owned());
    let name = version_name(inner, bucket, key, version)?.map(|name| name.key_in_bucket(key));
    let entry = match &name {
        Some(name) => inner.find_certain(&versions_bucket(bucket), name)?,
        None => None,
    };
    let (bucket, key) = (bucket_name, key_name);
    match name.zip(entry) {
        Some((_, entry)) if entry.is_delete_marker() => {
            let created = entry.version.time();
            Err(Error::IsDeleteMarker { bucket, key, version, created })
        }
        Some(found) => Ok(found),
        None => Err(Error::NoSuchVersion { bucket, key, version }),
    }
}
