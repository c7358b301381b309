//! An open store's keys: the index in memory and on the disk, and the locks of those who change it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haul_sync::{ArcRwLockReadGuard, RwLock, ShardedRwLock};

use crate::catalog::due::CheckpointDue;
use crate::catalog::files::IndexFiles;
use crate::catalog::merge_signal::MergeSignal;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::index::Index;
use crate::index::version_names::locked_bucket;
use crate::locks::KeyLocks;
use crate::object::Versioning;
use crate::pending_put::queue::PendingPuts;
use crate::settings::cache::SettingsCache;
use crate::writers::{BucketWriter, Writers};

/// Which needles there are, and who changes them. `docs/internals/locks.md` has the lock order.
#[derive(Debug)]
pub(crate) struct Keyspace {
    pub(crate) index: ShardedRwLock<Index>,
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
    /// The settings of buckets that were used before.
    pub(crate) settings: SettingsCache,
    /// `true` if versioning was enabled or suspended in a bucket, now or earlier.
    pub(crate) has_versions: AtomicBool,
}

impl Keyspace {
    /// Registers a writer in a bucket. The bucket exists as long as the result does.
    pub(crate) fn enter(&self, bucket: &str) -> Result<BucketWriter> {
        self.enter_with(self.gate.read_arc(), bucket)
    }

    /// Registers a writer like [`Self::enter`]; `None` if that would wait for a lock.
    pub(crate) fn try_enter(&self, bucket: &str) -> Result<Option<BucketWriter>> {
        let gate = self.gate.try_read_arc();
        gate.map(|gate| self.enter_with(gate, bucket)).transpose()
    }

    fn enter_with(&self, gate: ArcRwLockReadGuard<()>, bucket: &str) -> Result<BucketWriter> {
        let index = self.index.read();
        index.check_bucket(bucket)?;
        Ok(BucketWriter { _bucket: gate, _writer: self.writers.enter() })
    }

    /// Returns the error for a request to a bucket that is not in the index.
    pub(crate) fn missing_bucket(&self, bucket: &str) -> Error {
        self.index.read().missing_bucket(bucket)
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

    /// Returns the error that [`Self::versioning`] returns for a bucket.
    pub(crate) fn unknown_versioning(&self, bucket: &str) -> Error {
        self.versioning(bucket).err().unwrap_or_else(|| self.missing_bucket(bucket))
    }

    /// Returns `true` if object lock is certainly enabled in a bucket.
    pub(crate) fn has_object_lock(&self, bucket: &str) -> bool {
        self.has_versions.load(Ordering::Relaxed)
            && self.index.read().buckets.contains_key(locked_bucket(bucket).as_str())
    }

    /// Returns `true` unless it is certain that no version of the bucket has a lock.
    pub(crate) fn may_have_locks(&self, bucket: &str) -> bool {
        if !self.has_versions.load(Ordering::Relaxed) {
            return false;
        }
        let (index, locked) = (self.index.read(), locked_bucket(bucket));
        index.buckets.contains_key(locked.as_str()) || index.doubt_bucket(&locked).is_some()
    }
}
