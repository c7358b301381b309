//! Reports the changes that lifecycle rules make, such as to an audit log.

use std::fmt;
use std::sync::Arc;

/// A change that a lifecycle rule made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifecycleAction {
    /// An object expired.
    ExpireObject,
    /// A stale upload was aborted.
    AbortUpload,
}

type Observe = dyn Fn(LifecycleAction, &str, &str) + Send + Sync;

/// A function that the store calls with each change by a lifecycle rule, its bucket and its key,
/// once the change is durable. The default does nothing.
///
/// The key is locked during the call, so the function must not call the store. A crash between the
/// sync and the call loses the report.
#[derive(Clone, Default)]
pub struct LifecycleObserver(Option<Arc<Observe>>);

impl LifecycleObserver {
    /// Wraps a function.
    pub fn new(observe: impl Fn(LifecycleAction, &str, &str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(observe)))
    }

    pub(super) fn report(&self, action: LifecycleAction, bucket: &str, key: &str) {
        if let Some(observe) = &self.0 {
            observe(action, bucket, key);
        }
    }
}

impl fmt::Debug for LifecycleObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LifecycleObserver").field(&self.0.is_some()).finish()
    }
}
