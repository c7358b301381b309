//! Reads and writes the rules of a bucket, which are in its needle.

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
    /// Returns the rules of a bucket, from memory if they were used before.
    ///
    /// # Errors
    /// As [`crate::Store::lifecycle`].
    pub(super) fn rules(&self, bucket: &str) -> Result<Arc<Rules>> {
        if let Some(rules) = self.lifecycle.get(bucket) {
            return Ok(rules);
        }
        // Locked, so that compaction does not move the needle, and no other thread replaces it.
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
    fn bucket_needle(&self, bucket: &str) -> Result<(Version, Option<Position>)> {
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
    pub(super) fn try_set_lifecycle(
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
