//! A bucket's versioning state, represented by internal buckets.

use std::sync::atomic::Ordering;

use haul_append_log::SpacePriority;

use crate::error::{Error, Result};
use crate::format::{Head, Kind};
use crate::index::entry::Change;
use crate::index::version_names::{suspended_bucket, versions_bucket};
use crate::inner::Inner;
use crate::object::Versioning;
use crate::replication::confirmation::acknowledge;
use crate::store::Store;

impl Store {
    /// Returns a bucket's versioning state, without I/O.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`]; [`Error::Damaged`] if damage may hide the state.
    pub fn versioning(&self, bucket: &str) -> Result<Versioning> {
        self.inner.keyspace.index.read().check_bucket(bucket)?;
        self.inner.keyspace.versioning(bucket)
    }

    /// Enables or suspends versioning in a bucket.
    ///
    /// # Errors
    /// [`Error::Invalid`] for [`Versioning::Off`]: versioning can only be suspended;
    /// [`Error::InvalidBucketState`] to suspend it in a bucket with object lock;
    /// [`Error::NoSuchBucket`], [`Error::Full`], [`Error::NotReplicated`]; [`Error::Damaged`] while
    /// damage may hide the state.
    ///
    /// # Durability
    /// The state survives a power cut when this returns.
    pub fn set_versioning(&self, bucket: &str, versioning: Versioning) -> Result<()> {
        if versioning == Versioning::Off {
            let what = "versioning can be suspended, but not removed from a bucket".to_owned();
            return Err(Error::Invalid { what });
        }
        let set = || try_set_versioning(&self.inner, bucket, versioning);
        acknowledge(&self.inner, self.inner.with_space(set))
    }
}

/// Sets a bucket's versioning state.
///
/// 1. Keeps out writers, and compaction of needles in the internal buckets.
/// 2. Appends the internal buckets' needles as one record, and applies them once they are durable.
fn try_set_versioning(inner: &Inner, bucket: &str, versioning: Versioning) -> Result<()> {
    inner.check_writable()?;
    let _exclusive = inner.keyspace.gate.write();
    let _locked = inner.keyspace.keys.lock(bucket, "");
    inner.keyspace.index.read().check_bucket(bucket)?;
    if let Some(error) = inner.keyspace.index.read().possible_bucket_corruption(bucket) {
        return Err(error);
    }
    let before = inner.keyspace.versioning(bucket)?;
    if before == versioning {
        return Ok(());
    }
    if versioning == Versioning::Suspended && inner.keyspace.may_have_locks(bucket) {
        let why = "object lock needs versioning, which cannot be suspended";
        return Err(Error::InvalidBucketState { bucket: bucket.to_owned(), why });
    }
    inner.keyspace.has_versions.store(true, Ordering::Relaxed);
    let mut changes: Vec<Change> = Vec::new();
    let mut change = |kind, bucket: &str| {
        let mut head = Head::new(kind, bucket, "");
        head.version = inner.keyspace.clock.next();
        changes.push(head.into());
    };
    if before == Versioning::Off {
        change(Kind::BucketCreated, &versions_bucket(bucket));
    }
    match versioning {
        Versioning::Suspended => change(Kind::BucketCreated, &suspended_bucket(bucket)),
        Versioning::Enabled if before == Versioning::Suspended => {
            change(Kind::BucketDeleted, &suspended_bucket(bucket));
        }
        Versioning::Enabled | Versioning::Off => {}
    }
    let _writer = inner.keyspace.writers.enter();
    inner.commit_heads(changes, SpacePriority::Ordinary)
}
