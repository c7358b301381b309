//! Buckets: their creation and deletion, and their settings, which are in their needles.

pub(crate) mod needle;
pub(crate) mod quota;
pub(crate) mod settings;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use haul_append_log::SpacePriority;
use haul_sync::RwLockWriteGuard;

use crate::buckets::needle::change_bucket_attributes;
use crate::buckets::quota::OWNER_SETTING;
use crate::buckets::settings::bucket_settings;
use crate::buckets::settings::without_rules;
use crate::error::{Error, Result};
use crate::format::{Head, Kind};
use crate::index::entry::Change;
use crate::index::uploads::in_bucket;
use crate::index::version_names::{locked_bucket, quota_bucket, suspended_bucket, versions_bucket};
use crate::keys::check_bucket;
use crate::object::{Attributes, BucketId, BucketInfo, NewBucket, Quota, QuotaState, Usage};
use crate::replication::confirmation::acknowledge;
use crate::settings::cache::BucketSettings;
use crate::settings::check::check_setting;
use crate::store::Store;

/// A store without writers; returned by [`Store::lock_buckets`].
#[derive(Debug)]
pub struct LockedBuckets<'a> {
    store: &'a Store,
    _exclusive: RwLockWriteGuard<'a, ()>,
}

impl LockedBuckets<'_> {
    /// Checks that a bucket can be deleted.
    ///
    /// # Errors
    /// Fails like [`Store::delete_bucket`].
    pub fn check_empty(&self, bucket: &str) -> Result<()> {
        self.store.check_empty(bucket).map(drop)
    }

    /// Deletes a bucket like [`Store::delete_bucket`], but does not wait for the store's copy.
    ///
    /// # Errors
    /// Fails like [`Store::delete_bucket`].
    ///
    /// # Durability
    /// The deletion survives a power cut when this returns.
    pub fn delete(&self, bucket: &str) -> Result<()> {
        let inner = &*self.store.inner;
        // The empty key is the bucket's own lock. Compaction does not take the gate, but holds this
        // lock while it moves the bucket's needle, which it must not append after this change.
        let _lock = inner.keyspace.keys.lock(bucket, "");
        let internal = self.store.check_empty(bucket)?;
        let names = std::iter::once(bucket).chain(internal.iter().map(String::as_str));
        let _writer = inner.keyspace.writers.enter();
        let change = |bucket| {
            let mut head = Head::new(Kind::BucketDeleted, bucket, "");
            head.version = inner.keyspace.clock.next();
            Change::from(head)
        };
        inner.commit_heads(names.map(change).collect(), SpacePriority::Reserve)?;
        self.store.forget(bucket);
        Ok(())
    }
}

impl Store {
    /// Creates a bucket.
    ///
    /// # Errors
    /// [`Error::InvalidBucketName`], [`Error::BucketExists`], [`Error::NotReplicated`].
    ///
    /// # Durability
    /// The bucket survives a power cut when this returns.
    pub fn create_bucket(&self, bucket: &str) -> Result<()> {
        self.create_bucket_with(bucket, &NewBucket::default())
    }

    /// Creates an empty bucket with settings, and with object lock if required.
    ///
    /// # Errors
    /// Fails like [`Store::create_bucket`]; [`Error::Invalid`] like [`Store::set_bucket_setting`].
    ///
    /// # Durability
    /// The bucket, its settings and its states survive a power cut when this returns. A power cut
    /// before that leaves all of them or no bucket.
    pub fn create_bucket_with(&self, bucket: &str, new: &NewBucket) -> Result<()> {
        check_bucket(bucket)?;
        new.settings.iter().try_for_each(|(name, value)| check_setting(name, value))?;
        acknowledge(&self.inner, self.inner.with_space(|| self.try_create_bucket(bucket, new)))
    }

    fn try_create_bucket(&self, bucket: &str, new: &NewBucket) -> Result<()> {
        let inner = &*self.inner;
        inner.check_writable()?;
        let _exclusive = inner.keyspace.gate.write();
        let _lock = inner.keyspace.keys.lock(bucket, "");
        if inner.keyspace.index.read().buckets.contains_key(bucket) {
            return Err(Error::BucketExists { bucket: bucket.to_owned() });
        }
        // Registers a writer: the index does not know these needles until they are applied.
        let _writer = inner.keyspace.writers.enter();
        if let Some(id) = new.id {
            inner.keyspace.clock.advance_past(id.0);
        }
        let mut named = Head::new(Kind::BucketCreated, bucket, "");
        named.version = new.id.map_or_else(|| inner.keyspace.clock.next(), |id| id.0);
        let (mut heads, mut record) = (Vec::new(), named.encode(&new.settings));
        heads.push(named);
        if new.has_object_lock {
            inner.keyspace.has_versions.store(true, Ordering::Relaxed);
            for name in [versions_bucket(bucket), locked_bucket(bucket)] {
                let mut head = Head::new(Kind::BucketCreated, &name, "");
                head.version = inner.keyspace.clock.next();
                record.extend(head.encode(&Attributes::new()));
                heads.push(head);
            }
        }
        let at = inner.append(&record, &[], SpacePriority::Ordinary)?.wait()?;
        self.apply(heads.into_iter().map(Change::from).collect(), at);
        self.forget(bucket);
        inner.keyspace.quotas().set_owner(bucket, new.settings.get(OWNER_SETTING));
        Ok(())
    }

    /// Deletes a bucket without objects and uploads.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`], [`Error::BucketNotEmpty`], [`Error::NotReplicated`];
    /// [`Error::Damaged`] while damage may hide objects of the bucket.
    ///
    /// # Durability
    /// The deletion survives a power cut when this returns.
    pub fn delete_bucket(&self, bucket: &str) -> Result<()> {
        let delete = || self.lock_buckets().delete(bucket);
        acknowledge(&self.inner, self.inner.with_space(delete))
    }

    /// Keeps all writers out like [`Self::lock_buckets`]; `None` if one has not ended at `until`.
    #[must_use]
    pub fn lock_buckets_until(&self, until: Instant) -> Option<LockedBuckets<'_>> {
        let exclusive = self.inner.keyspace.gate.try_write_until(until)?;
        Some(LockedBuckets { store: self, _exclusive: exclusive })
    }

    /// Keeps all writers out of the store until the result is dropped, so that a bucket can be
    /// deleted from several stores of a pool at once.
    #[must_use]
    pub fn lock_buckets(&self) -> LockedBuckets<'_> {
        LockedBuckets { store: self, _exclusive: self.inner.keyspace.gate.write() }
    }

    /// Returns the internal buckets of an empty bucket.
    fn check_empty(&self, bucket: &str) -> Result<Vec<String>> {
        let index = self.inner.keyspace.index.read();
        let missing = || Error::NoSuchBucket { bucket: bucket.to_owned() };
        let found = index.buckets.get(bucket).filter(|_| index.has_bucket(bucket));
        // The bucket is certainly empty only if no keys are hidden.
        let corruption = if found.is_some() {
            index.any_possible_corruption()
        } else {
            index.possible_bucket_corruption(bucket)
        };
        if let Some(error) = corruption {
            return Err(error);
        }
        let objects = found.ok_or_else(missing)?.objects;
        let internal = [versions_bucket, suspended_bucket, locked_bucket, quota_bucket];
        let internal = internal.map(|name| name(bucket));
        let found = |name: &&String| index.buckets.contains_key(name.as_str());
        let internal: Vec<String> = internal.iter().filter(found).cloned().collect();
        let older = |name: &String| index.buckets.get(name.as_str()).map_or(0, |it| it.objects);
        let objects = objects + internal.iter().map(older).sum::<u64>();
        let uploading = in_bucket(&index.uploads, bucket).next().is_some();
        if objects > 0 || uploading {
            return Err(Error::BucketNotEmpty { bucket: bucket.to_owned() });
        }
        Ok(internal)
    }

    /// Removes cached data about a bucket that is created or deleted.
    fn forget(&self, bucket: &str) {
        self.inner.maintenance.lifecycle.forget(bucket);
        self.inner.keyspace.settings.forget(bucket);
        self.inner.keyspace.quotas().forget(bucket);
    }

    /// Returns a bucket's description.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`]; [`Error::Damaged`] if damage may hide its creation or deletion.
    pub fn bucket(&self, bucket: &str) -> Result<BucketInfo> {
        let index = self.inner.keyspace.index.read();
        if let Some(error) = index.possible_bucket_corruption(bucket) {
            return Err(error);
        }
        index.check_bucket(bucket)?;
        let found = index.buckets.get(bucket).map(|found| found.info(bucket));
        found.ok_or_else(|| Error::NoSuchBucket { bucket: bucket.to_owned() })
    }

    /// Returns all buckets, sorted by name.
    ///
    /// # Errors
    /// [`Error::Damaged`] while damage may hide the creation or deletion of a bucket.
    pub fn buckets(&self) -> Result<Vec<BucketInfo>> {
        let index = self.inner.keyspace.index.read();
        match index.any_possible_corruption() {
            Some(error) => Err(error),
            None => Ok(index.named_buckets().map(|(name, bucket)| bucket.info(name)).collect()),
        }
    }

    /// Returns a bucket's settings. The first call for a bucket may read its needle; later calls
    /// use memory.
    ///
    /// # Errors
    /// [`crate::Error::NoSuchBucket`]; [`crate::Error::Damaged`] if the settings are, or may be, in
    /// a damaged place.
    pub fn bucket_settings(&self, bucket: &str) -> Result<Arc<BucketSettings>> {
        bucket_settings(&self.inner, bucket)
    }

    /// Sets or removes a bucket setting.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for a setting of more than 64 KiB, and for a name that begins with
    /// `lifecycle.`; [`crate::Error::NoSuchBucket`], [`crate::Error::Full`],
    /// [`crate::Error::NotReplicated`]; [`crate::Error::Damaged`] while damage may hide newer
    /// settings.
    ///
    /// # Durability
    /// The setting survives a power cut when this returns. A power cut before that leaves the
    /// previous or the new one.
    pub fn set_bucket_setting(&self, bucket: &str, name: &str, value: Option<&str>) -> Result<()> {
        check_setting(name, value.unwrap_or_default())?;
        let set = || {
            let change = |attributes: &mut Attributes| match value {
                Some(value) => attributes.set(name, value),
                None => drop(attributes.remove(name)),
            };
            change_bucket_attributes(&self.inner, bucket, change, |attributes| {
                if name == OWNER_SETTING {
                    self.inner.keyspace.quotas().set_owner(bucket, value);
                }
                self.inner.keyspace.settings.insert(bucket, without_rules(&attributes));
            })
        };
        acknowledge(&self.inner, self.inner.with_space(set))
    }

    /// Returns the identity of a bucket, with which a write can require that no other bucket has the
    /// name by then ([`crate::TargetBucket`]).
    ///
    /// # Errors
    /// [`crate::Error::NoSuchBucket`]; [`crate::Error::Damaged`] while damage may hide the bucket.
    pub fn bucket_id(&self, bucket: &str) -> Result<BucketId> {
        let index = self.inner.keyspace.index.read();
        index.check_bucket(bucket)?;
        let missing = || Error::NoSuchBucket { bucket: bucket.to_owned() };
        index.bucket_id(bucket).ok_or_else(missing)
    }

    /// Sets a bucket's quota; one without limits removes it. A bucket that already exceeds the
    /// quota keeps its objects, but cannot grow.
    ///
    /// [`Usage`] defines what counts. Until a write is stored, all of its bytes count, even if it
    /// replaces an object. Deletions and changes of attributes are never rejected.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`], [`Error::Full`], [`Error::NotReplicated`]; [`Error::Damaged`] while
    /// damage may hide the bucket.
    ///
    /// # Durability
    /// The quota survives a power cut when this returns.
    pub fn set_quota(&self, bucket: &str, quota: Quota) -> Result<()> {
        let set = || quota::set(&self.inner, bucket, quota);
        acknowledge(&self.inner, self.inner.with_space(set))
    }

    /// Returns a bucket's quota and usage, without I/O.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`]; [`Error::Damaged`] if the quota cannot be read.
    pub fn quota(&self, bucket: &str) -> Result<QuotaState> {
        let keyspace = &self.inner.keyspace;
        keyspace.index.read().check_bucket(bucket)?;
        keyspace.shared_quotas.with_totals(|totals| keyspace.quotas().bucket(totals, bucket))
    }

    /// Returns the buckets that have a quota, sorted by name, without I/O.
    #[must_use]
    pub fn quotas(&self) -> Vec<QuotaState> {
        let keyspace = &self.inner.keyspace;
        keyspace.shared_quotas.with_totals(|totals| keyspace.quotas().buckets(totals))
    }

    /// Returns the owners that have a quota, with their buckets' usage, sorted by name, without
    /// I/O.
    #[must_use]
    pub fn owner_quotas(&self) -> Vec<QuotaState> {
        let keyspace = &self.inner.keyspace;
        keyspace.shared_quotas.with_totals(|totals| keyspace.quotas().owners(totals))
    }

    /// Checks that the quotas currently allow a write that adds `added` to a bucket. A caller can
    /// thus reject a write before it receives the content.
    ///
    /// # Errors
    /// [`Error::QuotaExceeded`]; [`Error::Damaged`] if the bucket has a quota that cannot be read.
    pub fn check_quota(&self, bucket: &str, added: Usage) -> Result<()> {
        let keyspace = &self.inner.keyspace;
        if !keyspace.quotas().is_any() {
            return Ok(());
        }
        keyspace.shared_quotas.with_totals(|totals| keyspace.quotas().check(totals, bucket, added))
    }

    /// Replaces the quotas of all owners, until the store is closed. The first call with an owner
    /// may read the settings of all buckets.
    ///
    /// # Errors
    /// [`Error::Damaged`] while the settings of a bucket cannot be read: its owner is then unknown,
    /// and it counts against no owner's quota. The quotas apply to all other buckets.
    pub fn set_owner_quotas(&self, quotas: &BTreeMap<String, Quota>) -> Result<()> {
        let inner = &*self.inner;
        // First, so that a bucket that is created meanwhile has its owner.
        if inner.keyspace.quotas().set_owners(quotas).is_empty() {
            return Ok(());
        }
        let index = inner.keyspace.index.read();
        let names: Vec<String> = index.named_buckets().map(|(name, _)| name.to_owned()).collect();
        drop(index);
        let mut outcome = Ok(());
        for bucket in names {
            match quota::set_owner(inner, &bucket) {
                Ok(()) | Err(Error::NoSuchBucket { .. }) => {}
                Err(error) => outcome = Err(error),
            }
        }
        outcome
    }
}
