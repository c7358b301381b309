//! Reads and writes a bucket's rules, which are stored in its needle.

use std::sync::Arc;

use crate::buckets::needle::{bucket_attributes, change_bucket_attributes};
use crate::error::Result;
use crate::inner::Inner;
use crate::lifecycle::format::{decode, is_rule};
use crate::lifecycle::rules::Lifecycle;
use crate::lifecycle::state::Rules;
use crate::object::Attributes;

/// Returns a bucket's rules: from memory if they were used before.
///
/// # Errors
/// Fails like [`crate::Store::lifecycle`].
pub(super) fn lifecycle_rules(inner: &Inner, bucket: &str) -> Result<Arc<Rules>> {
    if let Some(rules) = inner.maintenance.lifecycle.get(bucket) {
        return Ok(rules);
    }
    let _locked = inner.keyspace.keys.lock(bucket, "");
    if let Some(rules) = inner.maintenance.lifecycle.get(bucket) {
        return Ok(rules);
    }
    let lifecycle = decode(&bucket_attributes(inner, bucket)?)?;
    Ok(inner.maintenance.lifecycle.insert(bucket, lifecycle))
}

/// Replaces the rules in a bucket's needle.
pub(super) fn try_set_lifecycle(
    inner: &Inner,
    bucket: &str,
    lifecycle: &Lifecycle,
    attributes: &Attributes,
) -> Result<()> {
    let change = |all: &mut Attributes| {
        let settings = all.iter().filter(|(name, _)| !is_rule(name));
        *all = settings.chain(attributes.iter()).collect();
    };
    change_bucket_attributes(inner, bucket, change, |_| {
        inner.maintenance.lifecycle.insert(bucket, lifecycle.clone());
    })
}
