//! The settings of buckets that were used before.

use std::collections::HashMap;
use std::sync::Arc;

use haul_sync::RwLock;

use crate::object::Attributes;

/// The cached settings of buckets. Changed only under the lock of the bucket (that of its empty
/// key).
#[derive(Debug, Default)]
pub(crate) struct SettingsCache(RwLock<HashMap<String, Arc<Attributes>>>);

impl SettingsCache {
    /// Removes the settings of a bucket that is created or deleted.
    pub(crate) fn forget(&self, bucket: &str) {
        self.0.write().remove(bucket);
    }

    /// Returns the settings of a bucket, if they are cached.
    pub(super) fn get(&self, bucket: &str) -> Option<Arc<Attributes>> {
        self.0.read().get(bucket).cloned()
    }

    /// Replaces the settings of a bucket.
    pub(super) fn insert(&self, bucket: &str, settings: Attributes) -> Arc<Attributes> {
        let settings = Arc::new(settings);
        self.0.write().insert(bucket.to_owned(), Arc::clone(&settings));
        settings
    }
}
