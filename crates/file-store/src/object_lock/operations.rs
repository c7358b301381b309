//! Changes versions' locks.

use crate::error::{Error, Result};
use crate::index::entry::Entry;
use crate::object::{Attributes, ObjectInfo, VersionId};
use crate::object_lock::check::locked;
use crate::object_lock::lock::{LockChange, ObjectLock, Retention};
use crate::store::Store;

impl Store {
    /// Sets or removes the retention of a key's current object, or of a version. A retention that
    /// has not ended can only be extended, in the same mode; in governance mode, a caller that
    /// bypasses it can change it.
    ///
    /// # Errors
    /// [`Error::Locked`] if the retention cannot be changed like that; [`Error::NoObjectLock`];
    /// otherwise fails like [`Store::update_attributes`].
    ///
    /// # Durability
    /// The retention survives a power cut when this returns. A power cut before that leaves the
    /// previous or the new one.
    pub fn set_retention(
        &self,
        bucket: &str,
        key: &str,
        version: Option<VersionId>,
        retention: Option<Retention>,
        bypass_governance: bool,
    ) -> Result<ObjectInfo> {
        let change = LockChange::Retention { retention, bypass_governance };
        self.change_lock(bucket, key, version, change)
    }

    /// Sets or lifts the legal hold of a key's current object, or of a version.
    ///
    /// # Errors
    /// [`Error::NoObjectLock`]; otherwise fails like [`Store::update_attributes`].
    ///
    /// # Durability
    /// The legal hold survives a power cut when this returns. A power cut before that leaves the
    /// previous or the new state.
    pub fn set_legal_hold(
        &self,
        bucket: &str,
        key: &str,
        version: Option<VersionId>,
        is_on: bool,
    ) -> Result<ObjectInfo> {
        self.change_lock(bucket, key, version, LockChange::LegalHold(is_on))
    }

    fn change_lock(
        &self,
        bucket: &str,
        key: &str,
        version: Option<VersionId>,
        change: LockChange,
    ) -> Result<ObjectInfo> {
        if !self.has_object_lock(bucket)? {
            return Err(Error::NoObjectLock { bucket: bucket.to_owned() });
        }
        let now_ms = self.inner.keyspace.clock.now_ms();
        let changed = |entry: &Entry, attributes: &Attributes| {
            let lock = ObjectLock::of(attributes)?.apply(change, now_ms);
            let lock = lock.map_err(|why| locked(bucket, key, entry, why))?;
            let mut attributes = attributes.clone();
            lock.set_in(&mut attributes);
            Ok(attributes)
        };
        self.change_attributes(bucket.into(), key, version, &changed)
    }
}
