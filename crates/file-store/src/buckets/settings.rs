//! The operations on settings.

use std::sync::Arc;

use crate::error::Result;
use crate::inner::Inner;
use crate::lifecycle::format::is_rule;
use crate::object::Attributes;
use crate::settings::cache::BucketSettings;
use crate::settings::check::check_setting;
use crate::store::Store;

impl Store {
    /// Returns the settings of a bucket. The first call for a bucket may read its needle; later
    /// calls use memory.
    ///
    /// # Errors
    /// [`crate::Error::NoSuchBucket`]; [`crate::Error::Damaged`] if the settings are, or may be, in
    /// a damaged place.
    pub fn bucket_settings(&self, bucket: &str) -> Result<Arc<BucketSettings>> {
        self.inner.settings(bucket)
    }

    /// Sets a setting of a bucket, or removes it.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for a setting of more than 64 KiB, and for a name that begins with
    /// `lifecycle.`; [`crate::Error::NoSuchBucket`], [`crate::Error::Full`],
    /// [`crate::Error::NotReplicated`]; [`crate::Error::Damaged`] while damage may hide newer
    /// settings.
    ///
    /// # Durability
    /// The setting survives a power cut when this returns. A power cut before that leaves the
    /// previous or the new one.
    pub fn set_bucket_setting(&self, bucket: &str, name: &str, value: Option<&str>) -> Result<()> {
        check_setting(name, value.unwrap_or_default())?;
        let set = || {
            let change = |attributes: &mut Attributes| match value {
                Some(value) => attributes.set(name, value),
                None => drop(attributes.remove(name)),
            };
            self.inner.change_bucket_attributes(bucket, change, |attributes| {
                self.inner.settings.insert(bucket, without_rules(&attributes));
            })
        };
        self.inner.acknowledge(self.inner.with_space(set))
    }
}

impl Inner {
    pub(crate) fn settings(&self, bucket: &str) -> Result<Arc<BucketSettings>> {
        if let Some(settings) = self.settings.get(bucket) {
            return Ok(settings);
        }
        let _locked = self.keys.lock(bucket, "");
        if let Some(settings) = self.settings.get(bucket) {
            return Ok(settings);
        }
        let settings = without_rules(&self.bucket_attributes(bucket)?);
        Ok(self.settings.insert(bucket, settings))
    }
}

fn without_rules(attributes: &Attributes) -> Attributes {
    attributes.iter().filter(|(name, _)| !is_rule(name)).collect()
}
