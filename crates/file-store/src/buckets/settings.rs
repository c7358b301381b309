//! A bucket's settings, without its lifecycle rules.

use std::sync::Arc;

use crate::error::Result;
use crate::inner::Inner;
use crate::lifecycle::format::is_rule;
use crate::object::Attributes;
use crate::settings::cache::BucketSettings;

impl Inner {
    pub(crate) fn settings(&self, bucket: &str) -> Result<Arc<BucketSettings>> {
        if let Some(settings) = self.keyspace.settings.get(bucket) {
            return Ok(settings);
        }
        let _locked = self.keyspace.keys.lock(bucket, "");
        if let Some(settings) = self.keyspace.settings.get(bucket) {
            return Ok(settings);
        }
        let settings = without_rules(&self.bucket_attributes(bucket)?);
        Ok(self.keyspace.settings.insert(bucket, settings))
    }
}

pub(super) fn without_rules(attributes: &Attributes) -> Attributes {
    attributes.iter().filter(|(name, _)| !is_rule(name)).collect()
}
