//! Reads and writes a bucket's needle.

use haul_append_log::{Position, SpacePriority};

use crate::clock::Version;
use crate::error::{Error, Result};
use crate::format::{Head, Kind};
use crate::inner::Inner;
use crate::object::Attributes;

/// Reads a bucket's attributes. The caller holds the bucket's lock, which prevents compaction and
/// other threads from replacing the needle.
pub(crate) fn bucket_attributes(inner: &Inner, bucket: &str) -> Result<Attributes> {
    let (created, at) = bucket_needle(inner, bucket)?;
    // Damage may have lost the bucket's needle; its attributes are then unknown.
    let Some(at) = at else { return Ok(Attributes::new()) };
    let mut head = Head::new(Kind::BucketCreated, bucket, "");
    head.version = created;
    // A needle without attributes needs no read.
    if head.head_bytes() == at.payload_bytes as usize {
        return Ok(Attributes::new());
    }
    inner.read_attributes(at)
}

/// Returns the version and the position of a bucket's needle.
fn bucket_needle(inner: &Inner, bucket: &str) -> Result<(Version, Option<Position>)> {
    let index = inner.keyspace.index.read();
    index.check_bucket(bucket)?;
    if let Some(error) = index.possible_bucket_corruption(bucket) {
        return Err(error);
    }
    let missing = || Error::NoSuchBucket { bucket: bucket.to_owned() };
    index.buckets.get(bucket).map(|found| (found.created, found.position)).ok_or_else(missing)
}

/// Rewrites a bucket's needle with attributes that `change` has modified. Calls `applied` with them
/// before it returns.
///
/// 1. Keeps out writers, stops sweeps between two batches, and locks the bucket.
/// 2. Appends the needle with the version of the bucket's creation, so that the creation time
///    stays. After a crash the log may or may not have it: the bucket's last needle in the log
///    counts.
/// 3. Once the needle is durable, it replaces the earlier one in the index, and its attributes
///    apply.
pub(crate) fn change_bucket_attributes(
    inner: &Inner,
    bucket: &str,
    change: impl FnOnce(&mut Attributes),
    applied: impl FnOnce(Attributes),
) -> Result<()> {
    let _exclusive = inner.keyspace.gate.write();
    let _locked = inner.keyspace.keys.lock(bucket, "");
    let mut attributes = bucket_attributes(inner, bucket)?;
    change(&mut attributes);
    let (created, _) = bucket_needle(inner, bucket)?;
    let _writer = inner.keyspace.writers.enter();
    let mut head = Head::new(Kind::BucketCreated, bucket, "");
    // Damage may have lost the bucket's needle; its version is then unknown.
    let is_known = created != Version::default();
    head.version = if is_known { created } else { inner.keyspace.clock.next() };
    let at = inner.append(&head.encode(&attributes), &[], SpacePriority::Ordinary)?.wait()?;
    inner.apply(vec![head.into()], at);
    applied(attributes);
    Ok(())
}
