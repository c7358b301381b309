//! A bucket's settings, without its lifecycle rules.

use std::sync::Arc;

use crate::buckets::needle::bucket_attributes;
use crate::error::Result;
use crate::inner::Inner;
use crate::lifecycle::format::is_rule;
use crate::object::Attributes;
use crate::settings::cache::BucketSettings;

pub(crate) fn bucket_settings(inner: &Inner, bucket: &str) -> Result<Arc<BucketSettings>> {
    if let Some(settings) = inner.keyspace.settings.get(bucket) {
        return Ok(settings);
    }
    let _locked = inner.keyspace.keys.lock(bucket, "");
    if let Some(settings) = inner.keyspace.settings.get(bucket) {
        return Ok(settings);
    }
    let settings = without_rules(&bucket_attributes(inner, bucket)?);
    Ok(inner.keyspace.settings.insert(bucket, settings))
}

pub(super) fn without_rules(attributes: &Attributes) -> Attributes {
    attributes.iter().filter(|(name, _)| !is_rule(name)).collect()
}
