//! A bucket's versioning state: which of its internal buckets exist.

use std::sync::atomic::Ordering;

use haul_append_log::Room;

use crate::access::apply::AppendedRecord;
use crate::error::{Error, Result};
use crate::format::Kind;
use crate::index::entry::Change;
use crate::index::version_names::{suspended_bucket, versions_bucket};
use crate::inner::Inner;
use crate::object::{Attributes, Versioning};
use crate::store::Store;

impl Store {
    /// Returns a bucket's versioning state, without I/O.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`]; [`Error::Damaged`] if damage may hide the state.
    pub fn versioning(&self, bucket: &str) -> Result<Versioning> {
        self.inner.keyspace.index.read().check_bucket(bucket)?;
        self.inner.versioning(bucket)
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
        let set = || self.inner.try_set_versioning(bucket, versioning);
        self.inner.acknowledge(self.inner.with_space(set))
    }
}

impl Inner {
    /// Returns a bucket's versioning state. A writer has entered the bucket, so that the state
    /// cannot change.
    ///
    /// # Errors
    /// [`Error::Damaged`] if damage may hide that versioning was enabled.
    pub(crate) fn versioning(&self, bucket: &str) -> Result<Versioning> {
        match self.keyspace.has_versions.load(Ordering::Relaxed) {
            true => self.keyspace.index.read().versioning(bucket),
            // No store without versions pays for the lookup.
            false => Ok(Versioning::Off),
        }
    }

    /// Returns the error that [`Self::versioning`] returns for a bucket.
    pub(crate) fn unknown_versioning(&self, bucket: &str) -> Error {
        self.versioning(bucket).err().unwrap_or_else(|| self.keyspace.missing_bucket(bucket))
    }

    /// Sets a bucket's versioning state.
    ///
    /// 1. Locks out writers, and compaction of needles in the internal buckets.
    /// 2. Appends the internal buckets' needles as one record, and applies them once they are
    ///    durable.
    fn try_set_versioning(&self, bucket: &str, versioning: Versioning) -> Result<()> {
        self.check_writable()?;
        let _exclusive = self.keyspace.gate.write();
        let _locked = self.keyspace.keys.lock(bucket, "");
        self.keyspace.index.read().check_bucket(bucket)?;
        if let Some(error) = self.keyspace.index.read().doubt_bucket(bucket) {
            return Err(error);
        }
        let before = self.versioning(bucket)?;
        if before == versioning {
            return Ok(());
        }
        if versioning == Versioning::Suspended && self.may_have_locks(bucket) {
            let why = "object lock needs versioning, which cannot be suspended";
            return Err(Error::InvalidBucketState { bucket: bucket.to_owned(), why });
        }
        self.keyspace.has_versions.store(true, Ordering::Relaxed);
        let mut changes: Vec<Change> = Vec::new();
        let mut change = |kind, bucket: &str| {
            let mut head = self.head(kind, bucket, "");
            head.version = self.keyspace.clock.next();
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
        let _writer = self.keyspace.writers.enter();
        self.commit_heads(changes, Room::Ordinary)
    }

    /// Appends needles without attributes and data as one record, waits until it is durable, and
    /// applies it.
    pub(crate) fn commit_heads(&self, changes: Vec<Change>, room: Room) -> Result<()> {
        self.finish_record(self.append_heads(changes, room)?)
    }

    /// Appends needles without attributes and data as one record.
    pub(crate) fn append_heads(&self, changes: Vec<Change>, room: Room) -> Result<AppendedRecord> {
        let none = Attributes::new();
        let record: Vec<u8> = changes.iter().flat_map(|change| change.head.encode(&none)).collect();
        let ticket = self.append(&record, &[], room)?;
        Ok(AppendedRecord { changes, ticket })
    }
}
