//! Makes the events of changes by lifecycle rules.

use std::fmt;
use std::sync::Arc;

use crate::error::Result;
use crate::event::Event;
use crate::lifecycle::report::LifecycleAction;
use crate::settings::cache::BucketSettings;

type Make = dyn Fn(&str, &BucketSettings, LifecycleAction, &str) -> Option<Event> + Send + Sync;

/// A function that returns the event of a change by a lifecycle rule, from the bucket, its settings,
/// the change and the key. The event is queued with the change. The default returns none.
///
/// The key is locked during the call, so the function must not call the store.
#[derive(Clone, Default)]
pub struct LifecycleEvents(Option<Arc<Make>>);

impl LifecycleEvents {
    /// Wraps a function.
    pub fn new(
        make: impl Fn(&str, &BucketSettings, LifecycleAction, &str) -> Option<Event>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self(Some(Arc::new(make)))
    }

    /// Returns the maker for a bucket whose settings `read` returns. It is only called if there is a
    /// function.
    pub(crate) fn for_bucket<'a>(
        &self,
        bucket: &'a str,
        read: impl FnOnce() -> Result<Arc<BucketSettings>>,
    ) -> Result<BucketEvents<'a>> {
        let make = match &self.0 {
            Some(make) => Some((Arc::clone(make), read()?)),
            None => None,
        };
        Ok(BucketEvents { bucket, make })
    }
}

/// Makes the events of one bucket.
pub(crate) struct BucketEvents<'a> {
    bucket: &'a str,
    make: Option<(Arc<Make>, Arc<BucketSettings>)>,
}

impl BucketEvents<'_> {
    /// Returns the event of a change.
    pub(crate) fn event(&self, action: LifecycleAction, key: &str) -> Option<Event> {
        let (make, settings) = self.make.as_ref()?;
        make(self.bucket, settings, action, key)
    }
}

impl fmt::Debug for LifecycleEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LifecycleEvents").field(&self.0.is_some()).finish()
    }
}
