//! An open store's keys: the index in memory and on the disk, and the locks of its writers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haul_sync::{ArcRwLockReadGuard, RwLock, ShardedRwLock};

use crate::catalog::due::CheckpointDue;
use crate::catalog::files::IndexFiles;
use crate::catalog::merge_signal::MergeSignal;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::index::Index;
use crate::index::quotas::{Quotas, Reserved, WriteGrant};
use crate::index::version_names::locked_bucket;
use crate::locks::KeyLocks;
use crate::object::Versioning;
use crate::object::{TargetBucket, Usage};
use crate::pending_put::queue::PendingPuts;
use crate::quota_group::SharedQuotas;
use crate::settings::cache::SettingsCache;
use crate::writers::{BucketWriter, Writers};

/// The index of all needles, and the locks, writers and quotas that guard changes to it.
/// `docs/internals/locks.md` has the lock order.
#[derive(Debug)]
pub(crate) struct Keyspace {
    pub(crate) index: Arc<ShardedRwLock<Index>>,
    pub(crate) index_files: Arc<IndexFiles>,
    pub(crate) checkpoint_due: CheckpointDue,
    pub(crate) merges: MergeSignal,
    /// Key locks. A writer holds its key's lock from the lookup of the current object until the new
    /// needle is applied. The empty key is the bucket's own lock.
    pub(crate) keys: KeyLocks,
    /// Object writers hold the read lock, and a thread that creates or deletes a bucket holds the
    /// write lock, so that no object can be stored in a bucket that is being deleted.
    pub(crate) gate: Arc<RwLock<()>>,
    /// The writers whose needles may not be in the index yet.
    pub(crate) writers: Arc<Writers>,
    /// Puts that the completing thread applies to the index.
    pub(crate) pending_puts: PendingPuts,
    /// Assigns increasing versions to changes.
    pub(crate) clock: Clock,
    /// Cached bucket settings.
    pub(crate) settings: SettingsCache,
    /// The quotas, and the reservations of writes in progress from them. The stores of a pool share
    /// them.
    pub(crate) shared_quotas: SharedQuotas,
    /// `true` if versioning was enabled or suspended in a bucket, now or earlier.
    pub(crate) has_versions: AtomicBool,
}

impl Drop for Keyspace {
    fn drop(&mut self) {
        self.shared_quotas.leave(Arc::as_ptr(&self.index).cast());
    }
}

impl Keyspace {
    pub(crate) fn quotas(&self) -> &Arc<Quotas> {
        self.shared_quotas.quotas()
    }

    /// Registers a writer in a bucket. The bucket exists at least until the result is dropped.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`], also if another bucket has the name; [`Error::Damaged`].
    pub(crate) fn enter<'a>(&self, bucket: impl Into<TargetBucket<'a>>) -> Result<BucketWriter> {
        self.enter_with(self.gate.read_arc(), bucket.into())
    }

    /// Registers a writer like [`Self::enter`]; `None` if that would wait for a lock.
    pub(crate) fn try_enter(&self, bucket: TargetBucket<'_>) -> Result<Option<BucketWriter>> {
        let gate = self.gate.try_read_arc();
        gate.map(|gate| self.enter_with(gate, bucket)).transpose()
    }

    fn enter_with(
        &self,
        gate: ArcRwLockReadGuard<()>,
        bucket: TargetBucket<'_>,
    ) -> Result<BucketWriter> {
        let index = self.index.read();
        index.check_bucket(bucket.name)?;
        if bucket.id.is_some() && bucket.id != index.bucket_id(bucket.name) {
            return Err(Error::NoSuchBucket { bucket: bucket.name.to_owned() });
        }
        Ok(BucketWriter { _bucket: gate, _writer: self.writers.enter() })
    }

    /// Reserves what a write adds to a bucket, until its needle is applied to the index or the
    /// reservation is dropped. Each [`Change`](crate::index::entry::Change) that stores an object
    /// or a part contains its writer's reservation.
    ///
    /// # Errors
    /// [`Error::QuotaExceeded`]; [`Error::Damaged`] if the bucket has a quota that cannot be read.
    pub(crate) fn reserve(&self, bucket: &str, added: Usage) -> Result<Reserved> {
        // A store without quotas pays for this load only.
        if !self.quotas().is_any() {
            return Ok(Reserved::nothing());
        }
        self.shared_quotas.with_totals(|totals| self.quotas().reserve(totals, bucket, added))
    }

    /// Tracks a write that is never rejected, and that may retain a version.
    pub(crate) fn track(&self, bucket: &str) -> Reserved {
        if self.quotas().is_any() { self.quotas().track(bucket) } else { Reserved::nothing() }
    }

    /// Returns the reservation for content that is already written: `earlier`, or a new one if
    /// `earlier` is too small or quotas have changed since. The caller has entered the bucket, so
    /// that its quota stays as it is until the content is stored.
    pub(crate) fn claim(&self, bucket: &str, added: Usage, earlier: Reserved) -> Result<Reserved> {
        if earlier.covers(bucket, added) {
            return Ok(earlier);
        }
        drop(earlier);
        self.reserve(bucket, added)
    }

    /// Returns the error for a request to a bucket that is not in the index.
    pub(crate) fn missing_bucket(&self, bucket: &str) -> Error {
        self.index.read().missing_bucket(bucket)
    }

    /// Returns the grant for new content of a bucket: a reservation if the length is declared,
    /// otherwise a byte limit.
    pub(crate) fn grant(
        &self,
        bucket: &str,
        declared: Option<u64>,
        added: Usage,
    ) -> Result<WriteGrant> {
        if !self.quotas().is_any() {
            return Ok(WriteGrant::default());
        }
        if declared.is_some() {
            let reserved = self.reserve(bucket, added)?;
            return Ok(WriteGrant { reserved, bytes_left: None });
        }
        self.shared_quotas.with_totals(|totals| {
            self.quotas().check(totals, bucket, added)?;
            let bytes_left = self.quotas().bytes_left(totals, bucket);
            Ok(WriteGrant { bytes_left, ..WriteGrant::default() })
        })
    }

    /// Returns a bucket's versioning state. A writer has entered the bucket, so that the state
    /// cannot change.
    ///
    /// # Errors
    /// [`Error::Damaged`] if damage may hide that versioning was enabled.
    pub(crate) fn versioning(&self, bucket: &str) -> Result<Versioning> {
        match self.has_versions.load(Ordering::Relaxed) {
            true => self.index.read().versioning(bucket),
            // No store without versions pays for the lookup.
            false => Ok(Versioning::Off),
        }
    }

    /// Returns the error of [`Self::versioning`] for a bucket.
    pub(crate) fn unknown_versioning(&self, bucket: &str) -> Error {
        self.versioning(bucket).err().unwrap_or_else(|| self.missing_bucket(bucket))
    }

    /// Returns `true` if object lock is certainly enabled in a bucket.
    pub(crate) fn has_object_lock(&self, bucket: &str) -> bool {
        self.has_versions.load(Ordering::Relaxed)
            && self.index.read().buckets.contains_key(locked_bucket(bucket).as_str())
    }

    /// Returns `false` if certainly no version of the bucket has a lock.
    pub(crate) fn may_have_locks(&self, bucket: &str) -> bool {
        if !self.has_versions.load(Ordering::Relaxed) {
            return false;
        }
        let (index, locked) = (self.index.read(), locked_bucket(bucket));
        index.buckets.contains_key(locked.as_str())
            || index.possible_bucket_corruption(&locked).is_some()
    }
}
