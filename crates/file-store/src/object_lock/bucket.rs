//! A bucket's object-lock state: an internal bucket, which exists if locks are enabled, and the
//! default retention, which is a bucket setting.

use std::sync::atomic::Ordering;

use haul_append_log::SpacePriority;

use crate::error::{Error, Result};
use crate::format::{Head, Kind};
use crate::index::version_names::locked_bucket;
use crate::inner::Inner;
use crate::object::{Attributes, Versioning};
use crate::object_lock::lock::DefaultRetention;
use crate::replication::confirmation::acknowledge;
use crate::store::Store;

/// The name of the setting.
const DEFAULT_RETENTION: &str = "object-lock.default";

impl Store {
    /// Enables object lock in a bucket, forever.
    ///
    /// # Errors
    /// [`Error::InvalidBucketState`] unless versioning is enabled; [`Error::NoSuchBucket`],
    /// [`Error::Full`], [`Error::NotReplicated`]; [`Error::Damaged`] while damage may hide the
    /// bucket's state.
    ///
    /// # Durability
    /// The state survives a power cut when this returns.
    pub fn enable_object_lock(&self, bucket: &str) -> Result<()> {
        let enable = || try_enable_object_lock(&self.inner, bucket);
        acknowledge(&self.inner, self.inner.with_space(enable))
    }

    /// Returns `true` if object lock is enabled in a bucket, without I/O.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`]; [`Error::Damaged`] if damage may hide that it is enabled.
    pub fn has_object_lock(&self, bucket: &str) -> Result<bool> {
        let index = self.inner.keyspace.index.read();
        index.check_bucket(bucket)?;
        let locked = locked_bucket(bucket);
        match index.buckets.contains_key(locked.as_str()) {
            true => Ok(true),
            false if !self.inner.keyspace.has_versions.load(Ordering::Relaxed) => Ok(false),
            false => index.possible_bucket_corruption(&locked).map_or(Ok(false), Err),
        }
    }

    /// Returns the retention that new objects in a bucket get if they are stored without one.
    ///
    /// # Errors
    /// Fails like [`Store::bucket_settings`].
    pub fn default_retention(&self, bucket: &str) -> Result<Option<DefaultRetention>> {
        default_retention(&*self.bucket_settings(bucket)?)
    }

    /// Sets or removes the retention that a bucket's new objects get if they are stored without
    /// one. Existing versions are not changed.
    ///
    /// # Errors
    /// [`Error::NoObjectLock`]; otherwise fails like [`Store::set_bucket_setting`].
    ///
    /// # Durability
    /// Like [`Store::set_bucket_setting`].
    pub fn set_default_retention(
        &self,
        bucket: &str,
        retention: Option<DefaultRetention>,
    ) -> Result<()> {
        if !self.has_object_lock(bucket)? {
            return Err(Error::NoObjectLock { bucket: bucket.to_owned() });
        }
        let setting = retention.map(DefaultRetention::to_setting);
        self.set_bucket_setting(bucket, DEFAULT_RETENTION, setting.as_deref())
    }
}

fn try_enable_object_lock(inner: &Inner, bucket: &str) -> Result<()> {
    inner.check_writable()?;
    let _exclusive = inner.keyspace.gate.write();
    let _locked = inner.keyspace.keys.lock(bucket, "");
    inner.keyspace.index.read().check_bucket(bucket)?;
    if inner.keyspace.versioning(bucket)? != Versioning::Enabled {
        let why = "object lock needs versioning, which is not enabled";
        return Err(Error::InvalidBucketState { bucket: bucket.to_owned(), why });
    }
    if inner.keyspace.has_object_lock(bucket) {
        return Ok(());
    }
    let head = head_of_new_bucket(inner, &locked_bucket(bucket));
    let _writer = inner.keyspace.writers.enter();
    inner.commit_heads(vec![head.into()], SpacePriority::Ordinary)
}

fn head_of_new_bucket(inner: &Inner, name: &str) -> Head {
    let mut head = Head::new(Kind::BucketCreated, name, "");
    head.version = inner.keyspace.clock.next();
    head
}

/// Returns the default retention in a bucket's settings.
pub(super) fn default_retention(settings: &Attributes) -> Result<Option<DefaultRetention>> {
    settings.get(DEFAULT_RETENTION).map(DefaultRetention::from_setting).transpose()
}
