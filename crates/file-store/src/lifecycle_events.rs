//! Makes the events of changes by lifecycle rules.

use std::fmt;
use std::sync::Arc;

use crate::error::Result;
use crate::lifecycle::report::LifecycleAction;
use crate::object::Event;
use crate::settings::cache::BucketSettings;

type Make = dyn Fn(&BucketSettings, LifecycleAction, &str) -> Option<Event> + Send + Sync;

/// A function that returns the event of a change by a lifecycle rule, from the bucket's settings, the
/// change and the key. The event is queued with the change. The default returns none.
///
/// The key is locked during the call, so the function must not call the store.
#[derive(Clone, Default)]
pub struct LifecycleEvents(Option<Arc<Make>>);

impl LifecycleEvents {
    /// Wraps a function.
    pub fn new(
        make: impl Fn(&BucketSettings, LifecycleAction, &str) -> Option<Event> + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(make)))
    }

    /// Returns the maker for a bucket whose settings `read` returns. It is only called if there is a
    /// function.
    pub(crate) fn with_settings(
        &self,
        read: impl FnOnce() -> Result<Arc<BucketSettings>>,
    ) -> Result<BucketEvents> {
        let make = |make: &Arc<Make>| Ok((Arc::clone(make), read()?));
        self.0.as_ref().map(make).transpose().map(BucketEvents)
    }
}

/// Makes the events of one bucket.
pub(crate) struct BucketEvents(Option<(Arc<Make>, Arc<BucketSettings>)>);

impl BucketEvents {
    /// Returns the event of a change.
    pub(crate) fn event(&self, action: LifecycleAction, key: &str) -> Option<Event> {
        let (make, settings) = self.0.as_ref()?;
        make(settings, action, key)
    }
}

impl fmt::Debug for LifecycleEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LifecycleEvents").field(&self.0.is_some()).finish()
    }
}
