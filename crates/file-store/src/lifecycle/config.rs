//! The lifecycle of each bucket: stored in the bucket's needle, and cached.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use haul_append_log::Room;
use parking_lot::RwLock;

use crate::clock::Version;
use crate::error::{Error, Result};
use crate::format::Kind;
use crate::inner::Inner;
use crate::lifecycle::format::{decode, encode};
use crate::lifecycle::rules::Lifecycle;
use crate::lifecycle::stats::LifecycleCounters;
use crate::object::Attributes;
use crate::store::Store;

/// The maximum length of all rules of a bucket in its needle, which compaction moves as a whole.
const RULES_BYTES_MAX: usize = 1 << 20;

/// The rules of a bucket. The rules of two revisions may differ.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) lifecycle: Lifecycle,
    pub(super) revision: u64,
}

/// The rules of all buckets that were used, and the counters of sweeps.
#[derive(Debug, Default)]
pub(crate) struct LifecycleState {
    /// Changed only while the lock of the bucket (that of its empty key) is held.
    rules: RwLock<HashMap<String, Arc<Rules>>>,
    last_revision: AtomicU64,
    pub(crate) counters: LifecycleCounters,
}

impl LifecycleState {
    /// Forgets the rules of a bucket that is created or deleted.
    pub(crate) fn forget(&self, bucket: &str) {
        self.rules.write().remove(bucket);
    }

    /// Returns `true` if these are still the rules of the bucket.
    pub(super) fn is_current(&self, bucket: &str, rules: &Rules) -> bool {
        self.rules.read().get(bucket).is_some_and(|current| current.revision == rules.revision)
    }

    fn insert(&self, bucket: &str, lifecycle: Lifecycle) -> Arc<Rules> {
        let revision = 1 + self.last_revision.fetch_add(1, Ordering::Relaxed);
        let rules = Arc::new(Rules { lifecycle, revision });
        self.rules.write().insert(bucket.to_owned(), Arc::clone(&rules));
        rules
    }
}

impl Store {
    /// Returns the lifecycle of a bucket; one without rules if none was set. The first call for a
    /// bucket may read its needle, later ones read memory.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`]; [`Error::Damaged`] if the rules are, or may be, in a damaged place;
    /// [`Error::Invalid`] if a later version of the store wrote rules unknown to this one.
    pub fn lifecycle(&self, bucket: &str) -> Result<Lifecycle> {
        Ok(self.inner.rules(bucket)?.lifecycle.clone())
    }

    /// Returns the time at which an object expires and the id of the rule, if there is one. Costs
    /// as [`Store::lifecycle`].
    ///
    /// # Errors
    /// As [`Store::lifecycle`].
    pub fn expiration(
        &self,
        bucket: &str,
        info: &crate::ObjectInfo,
    ) -> Result<Option<(std::time::SystemTime, String)>> {
        let rules = self.inner.rules(bucket)?;
        let expiration = rules.lifecycle.expiration(info);
        Ok(expiration.map(|(at, rule)| (at, rule.id.clone())))
    }

    /// Replaces the lifecycle of a bucket; one without rules removes it. The next check sweeps the
    /// bucket ([`crate::Options::lifecycle_check_every`]). When this returns, no sweep applies the
    /// earlier rules any more.
    ///
    /// # Errors
    /// [`Error::Invalid`] for more than [`crate::LIFECYCLE_RULES_MAX`] rules or 1 MiB, two rules of
    /// one id, a rule without action, and a rule that can apply to no object;
    /// [`Error::NoSuchBucket`], [`Error::Full`]; [`Error::Damaged`] while damage may hide newer
    /// rules.
    ///
    /// # Durability
    /// It survives a power cut when this returns; before, either the earlier or the new rules do.
    pub fn set_lifecycle(&self, bucket: &str, lifecycle: &Lifecycle) -> Result<()> {
        lifecycle.check()?;
        let attributes = encode(lifecycle);
        let bytes = attributes.bytes();
        if bytes > RULES_BYTES_MAX {
            let what =
                format!("lifecycle rules of {bytes} bytes take more than {RULES_BYTES_MAX} bytes");
            return Err(Error::Invalid { what });
        }
        self.inner.with_space(|| self.inner.try_set_lifecycle(bucket, lifecycle, &attributes))
    }
}

impl Inner {
    /// Returns the rules of a bucket, from memory if they were used before.
    ///
    /// # Errors
    /// As [`Store::lifecycle`].
    pub(super) fn rules(&self, bucket: &str) -> Result<Arc<Rules>> {
        if let Some(rules) = self.lifecycle.rules.read().get(bucket) {
            return Ok(Arc::clone(rules));
        }
        // Locked, so that compaction does not move the needle, and no other thread replaces it.
        let _locked = self.keys.lock(bucket, "");
        let lifecycle = decode(&self.bucket_attributes(bucket)?)?;
        Ok(self.lifecycle.insert(bucket, lifecycle))
    }

    /// Reads the attributes of a bucket, whose lock the caller holds.
    fn bucket_attributes(&self, bucket: &str) -> Result<Attributes> {
        let (created, at) = self.bucket_needle(bucket)?;
        // The needle of a bucket that was lost to damage had rules or not: nothing expires.
        let Some(at) = at else { return Ok(Attributes::new()) };
        let mut head = self.head(Kind::BucketCreated, bucket, "");
        head.version = created;
        // A needle without attributes needs no read.
        if head.head_bytes() == at.payload_bytes as usize {
            return Ok(Attributes::new());
        }
        self.read_attributes(at)
    }

    /// Returns the version and the place of the needle of a bucket.
    fn bucket_needle(&self, bucket: &str) -> Result<(Version, Option<haul_append_log::Position>)> {
        let index = self.index.read();
        if let Some(error) = index.doubt_bucket(bucket) {
            return Err(error);
        }
        let missing = || Error::NoSuchBucket { bucket: bucket.to_owned() };
        index.buckets.get(bucket).map(|found| (found.created, found.at)).ok_or_else(missing)
    }

    /// Writes the needle of a bucket again, with other attributes.
    ///
    /// 1. Writers, and sweeps between two batches, are kept out, and the bucket is locked.
    /// 2. The needle is appended, with the version of the bucket's creation, so that this stays.
    ///    After a crash the log has it or not: the last needle of the bucket in the log counts.
    /// 3. The needle is durable: it replaces the earlier one in the index, and its rules apply.
    fn try_set_lifecycle(
        &self,
        bucket: &str,
        lifecycle: &Lifecycle,
        attributes: &Attributes,
    ) -> Result<()> {
        let _alone = self.gate.write();
        let _locked = self.keys.lock(bucket, "");
        let (created, _) = self.bucket_needle(bucket)?;
        let _writer = self.writers.enter();
        let mut head = self.head(Kind::BucketCreated, bucket, "");
        // A bucket whose needle was lost to damage has no version.
        let is_known = created != Version::default();
        head.version = if is_known { created } else { self.clock.next() };
        let at = self.append(&head.encode(attributes), &[], Room::Ordinary)?.wait()?;
        self.apply(vec![head.into()], at);
        self.lifecycle.insert(bucket, lifecycle.clone());
        Ok(())
    }
}
