//! Cached bucket settings.

use std::any::Any;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use haul_sync::RwLock;

use crate::object::Attributes;

/// A bucket's settings, as they were read.
#[derive(Debug, Default)]
pub struct BucketSettings {
    attributes: Attributes,
    derived: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl BucketSettings {
    /// Returns a value that the program derives from these settings, such as a parsed document. The
    /// first call computes it; later calls, also for other copies of the same settings, return it.
    /// Changing the settings discards it.
    ///
    /// A program derives values of one type; each call computes values of another type again.
    pub fn derived<T: Any + Send + Sync>(&self, derive: impl Fn(&Attributes) -> T) -> Arc<T> {
        let value = self.derived.get_or_init(|| Arc::new(derive(&self.attributes)));
        Arc::clone(value).downcast().unwrap_or_else(|_other| Arc::new(derive(&self.attributes)))
    }
}

impl Deref for BucketSettings {
    type Target = Attributes;

    fn deref(&self) -> &Attributes {
        &self.attributes
    }
}

/// Cached bucket settings. Changed only under the bucket's lock, which is the lock of its empty
/// key.
#[derive(Debug, Default)]
pub(crate) struct SettingsCache(RwLock<HashMap<String, Arc<BucketSettings>>>);

impl SettingsCache {
    /// Removes the settings of a bucket that is created or deleted.
    pub(crate) fn forget(&self, bucket: &str) {
        self.0.write().remove(bucket);
    }

    /// Returns a bucket's settings, if they are cached.
    pub(crate) fn get(&self, bucket: &str) -> Option<Arc<BucketSettings>> {
        self.0.read().get(bucket).cloned()
    }

    /// Replaces a bucket's settings.
    pub(crate) fn insert(&self, bucket: &str, attributes: Attributes) -> Arc<BucketSettings> {
        let settings = Arc::new(BucketSettings { attributes, derived: OnceLock::new() });
        self.0.write().insert(bucket.to_owned(), Arc::clone(&settings));
        settings
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn value_is_derived_once_for_each_state_of_the_settings() {
        let cache = SettingsCache::default();
        let derivations = Cell::new(0);
        let length = |settings: &BucketSettings| {
            *settings.derived(|attributes| {
                derivations.set(derivations.get() + 1);
                attributes.bytes()
            })
        };
        let first = cache.insert("b", Attributes::from_iter([("a", "12")]));
        for settings in [&first, &cache.get("b").unwrap(), &first] {
            assert_eq!((length(settings), derivations.get()), (3, 1));
        }
        let second = cache.insert("b", Attributes::from_iter([("a", "1234")]));
        assert_eq!((length(&second), length(&first), derivations.get()), (5, 3, 2));
        assert_eq!(*second.derived(|_| "another type"), "another type");
        assert_eq!((length(&second), derivations.get()), (5, 2));
    }
}
