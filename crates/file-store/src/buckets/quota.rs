//! Quotas of buckets, and of the users that own them.
//!
//! A bucket's quota is in the needle of an internal bucket that exists while there is a quota. To
//! load the quotas, opening a store reads only these needles. The caller sets the quotas of owners;
//! the setting [`OWNER_SETTING`] of each bucket names its owner.

use haul_append_log::SpacePriority;

use crate::buckets::settings::bucket_settings;
use crate::error::{Error, Result};
use crate::format::{Head, Kind};
use crate::index::quotas::Limit;
use crate::index::version_names::{limited_bucket, quota_bucket};
use crate::inner::Inner;
use crate::object::{Attributes, Quota};

/// The bucket setting that names the bucket's owner, the user against whose quota it counts.
pub const OWNER_SETTING: &str = "owner";

const BYTES: &str = "bytes";
const OBJECTS: &str = "objects";

/// Makes a bucket's quota durable, and applies it to the writes that begin afterwards.
pub(super) fn set(inner: &Inner, bucket: &str, quota: Quota) -> Result<()> {
    inner.check_writable()?;
    // A write that has entered a bucket relies on the quotas that it found.
    let _exclusive = inner.keyspace.gate.write();
    let _locked = inner.keyspace.keys.lock(bucket, "");
    let name = quota_bucket(bucket);
    let index = inner.keyspace.index.read();
    index.check_bucket(bucket)?;
    if let Some(error) = index.possible_bucket_corruption(bucket) {
        return Err(error);
    }
    let exists = index.buckets.contains_key(name.as_str());
    drop(index);
    let (kind, priority) = match quota.is_limited() {
        true => (Kind::BucketCreated, SpacePriority::Ordinary),
        false if exists => (Kind::BucketDeleted, SpacePriority::Reserve),
        false => return Ok(()),
    };
    let _writer = inner.keyspace.writers.enter();
    let mut head = Head::new(kind, &name, "");
    head.version = inner.keyspace.clock.next();
    let at = inner.append(&head.encode(&to_attributes(quota)), &[], priority)?.wait()?;
    inner.apply(vec![head.into()], at);
    inner.keyspace.quotas().set_bucket(bucket, Limit::Known(quota));
    Ok(())
}

/// Reads the quotas of a store that is being opened.
///
/// # Errors
/// A needle that cannot be read, unless it is damaged: its bucket then cannot grow.
pub(crate) fn load(inner: &Inner) -> Result<()> {
    let index = inner.keyspace.index.read();
    let limited = index.buckets.iter().filter_map(|(name, found)| {
        let bucket = limited_bucket(name).filter(|bucket| index.has_bucket(bucket))?;
        Some((bucket.to_owned(), found.position?))
    });
    let limited: Vec<_> = limited.collect();
    drop(index);
    for (bucket, at) in limited {
        let limit = match inner.read_attributes(at) {
            Ok(attributes) => Limit::Known(from_attributes(&attributes)?),
            Err(Error::Damaged { file, offset, what }) => Limit::Damaged { file, offset, what },
            Err(error) => return Err(error),
        };
        inner.keyspace.quotas().set_bucket(&bucket, limit);
    }
    Ok(())
}

/// Records the owner that a bucket's settings name.
pub(super) fn set_owner(inner: &Inner, bucket: &str) -> Result<()> {
    // No other bucket takes the name meanwhile.
    let _gate = inner.keyspace.gate.read();
    let settings = bucket_settings(inner, bucket)?;
    inner.keyspace.quotas().set_owner(bucket, settings.get(OWNER_SETTING));
    Ok(())
}

fn to_attributes(quota: Quota) -> Attributes {
    let limits = [(BYTES, quota.bytes), (OBJECTS, quota.objects)];
    limits.into_iter().filter_map(|(name, limit)| Some((name, limit?.to_string()))).collect()
}

fn from_attributes(attributes: &Attributes) -> Result<Quota> {
    let limit = |name| {
        let Some(text) = attributes.get(name) else { return Ok(None) };
        let what = || format!("the quota of a bucket has the limit \"{text}\"");
        text.parse().map(Some).map_err(|_not_a_number| Error::Invalid { what: what() })
    };
    Ok(Quota { bytes: limit(BYTES)?, objects: limit(OBJECTS)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quota_reads_back_as_written() {
        for bytes in [None, Some(0), Some(u64::MAX)] {
            for objects in [None, Some(7)] {
                let quota = Quota { bytes, objects };
                assert_eq!(from_attributes(&to_attributes(quota)).unwrap(), quota);
            }
        }
        let other = Attributes::from_iter([(BYTES, "many")]);
        assert!(matches!(from_attributes(&other), Err(Error::Invalid { .. })));
    }
}
