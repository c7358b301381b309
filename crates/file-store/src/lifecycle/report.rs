//! The reports of sweeps: their counts, and each change for an observer such as an audit log.

use std::fmt;
use std::sync::Arc;

use crate::object::VersionId;

/// A sweep's counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Listed keys: only keys with the prefix of a rule that expires objects.
    pub scanned_keys: u64,
    /// Objects and versions whose tags were read, because only rules with tags may expire them.
    pub tag_reads: u64,
    /// Deleted objects.
    pub expired_objects: u64,
    /// Removed noncurrent versions, and removed delete markers.
    pub expired_versions: u64,
    /// Bytes of these objects and versions.
    pub expired_bytes: u64,
    /// Aborted uploads.
    pub aborted_uploads: u64,
    /// Objects, versions and uploads that were kept because their newest state may be in a damaged
    /// place, or because their tags cannot be read.
    pub skipped: u64,
    /// Expired versions that were kept because a lock protects them.
    pub locked: u64,
}

impl SweepReport {
    /// Returns `true` if the sweep changed the store.
    pub(crate) fn has_changes(&self) -> bool {
        self.expired_objects > 0 || self.expired_versions > 0 || self.aborted_uploads > 0
    }

    /// Adds the counts of one step, or of the sweep of another store of a pool.
    pub fn add(&mut self, step: &Self) {
        self.scanned_keys += step.scanned_keys;
        self.tag_reads += step.tag_reads;
        self.expired_objects += step.expired_objects;
        self.expired_versions += step.expired_versions;
        self.expired_bytes += step.expired_bytes;
        self.aborted_uploads += step.aborted_uploads;
        self.skipped += step.skipped;
        self.locked += step.locked;
    }
}

/// A change that a lifecycle rule made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifecycleAction {
    /// An object expired, in a bucket without versions.
    ExpireObject,
    /// A key's current object expired: it was retained, and a delete marker was created.
    CreateMarker,
    /// A noncurrent version, or a delete marker without other versions, was removed.
    ExpireVersion(VersionId),
    /// A stale upload was aborted.
    AbortUpload,
}

type Observe = dyn Fn(LifecycleAction, &str, &str) + Send + Sync;

/// A function that the store calls for each change by a lifecycle rule, with the change, the bucket
/// and the key, once the change is durable. The default does nothing.
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

    pub(crate) fn report(&self, action: LifecycleAction, bucket: &str, key: &str) {
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
