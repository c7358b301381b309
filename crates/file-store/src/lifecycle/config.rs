//! Reads and writes of the rules of a bucket, which are stored in its needle.

use std::sync::Arc;

use haul_append_log::{Position, Room};

use crate::clock::Version;
use crate::error::{Error, Result};
use crate::format::Kind;
use crate::inner::Inner;
use crate::lifecycle::format::decode;
use crate::lifecycle::rules::Lifecycle;
use crate::lifecycle::state::Rules;
use crate::object::Attributes;

impl Inner {
    /// Returns the rules of a bucket: from memory if they were used before.
    ///
    /// # Errors
    /// Like [`crate::Store::lifecycle`].
    pub(super) fn rules(&self, bucket: &str) -> Result<Arc<Rules>> {
        if let Some(rules) = self.lifecycle.get(bucket) {
            return Ok(rules);
        }
        // The lock prevents compaction and other threads from replacing the needle.
        let _locked = self.keys.lock(bucket, "");
        if let Some(rules) = self.lifecycle.get(bucket) {
            return Ok(rules);
        }
        let lifecycle = decode(&self.bucket_attributes(bucket)?)?;
        Ok(self.lifecycle.insert(bucket, lifecycle))
    }

    /// Reads the attributes of a bucket, whose lock the caller holds.
    fn bucket_attributes(&self, bucket: &str) -> Result<Attributes> {
        let (created, at) = self.bucket_needle(bucket)?;
        // A bucket whose needle was lost to damage has no known rules, so nothing expires.
        let Some(at) = at else { return Ok(Attributes::new()) };
        let mut head = self.head(Kind::BucketCreated, bucket, "");
        head.version = created;
        // A needle without attributes needs no read.
        if head.head_bytes() == at.payload_bytes as usize {
            return Ok(Attributes::new());
        }
        self.read_attributes(at)
    }

    /// Returns the version and the position of the needle of a bucket.
    fn bucket_needle(&self, bucket: &str) -> Result<(Version, Option<Position>)> {
        let index = self.index.read();
        index.check_bucket(bucket)?;
        if let Some(error) = index.doubt_bucket(bucket) {
            return Err(error);
        }
        let missing = || Error::NoSuchBucket { bucket: bucket.to_owned() };
        index.buckets.get(bucket).map(|found| (found.created, found.at)).ok_or_else(missing)
    }

    /// Writes a new needle of a bucket with other attributes.
    ///
    /// 1. Locks out writers, and sweeps between two batches, and locks the bucket.
    /// 2. Appends the needle with the version of the bucket's creation, so that the creation time
    ///    stays. After a crash the log may or may not have it: the last needle of the bucket in the
    ///    log counts.
    /// 3. Once the needle is durable, it replaces the earlier one in the index, and its rules
    ///    apply.
    pub(super) fn try_set_lifecycle(
        &self,
        bucket: &str,
        lifecycle: &Lifecycle,
        attributes: &Attributes,
    ) -> Result<()> {
        let _exclusive = self.gate.write();
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
