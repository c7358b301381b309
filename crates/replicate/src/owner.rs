//! The manifest of a copy that this process owns, and the thread that renews its lease.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use parking_lot::{Condvar, MappedMutexGuard, Mutex, MutexGuard};

use crate::error::{Error, Result};
use crate::lease::Lease;
use crate::manifest::Manifest;
use crate::manifest::object::ManifestObject;

/// The shortest pause after a failed renewal.
const PAUSE_MIN: Duration = Duration::from_millis(10);

/// The manifest of a copy that this process owns. Dropping it ends the thread, after which the
/// lease runs out.
#[derive(Debug)]
pub(crate) struct OwnedManifest {
    pub(crate) shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// The manifest, and the request to stop the thread.
#[derive(Debug)]
pub(crate) struct Shared {
    object: Mutex<ManifestObject>,
    is_stopping: Mutex<bool>,
    stop: Condvar,
}

impl OwnedManifest {
    /// Returns a manifest that this process has replaced by one with its session. With a lease, a
    /// thread renews it. The thread passes each error to `on_error`, and ends after a final one.
    pub(crate) fn new(
        object: ManifestObject,
        lease: Option<Arc<Lease>>,
        on_error: impl Fn(&Error) + Send + 'static,
    ) -> Result<Self> {
        let (object, is_stopping) = (Mutex::new(object), Mutex::new(false));
        let shared = Arc::new(Shared { object, is_stopping, stop: Condvar::new() });
        let thread = lease.map(|lease| {
            let shared = Arc::clone(&shared);
            let renew = move || shared.renew(&lease, &on_error);
            Builder::new().name("replicate-lease".to_owned()).spawn(renew)
        });
        let cannot = |error| Error::Invalid(format!("cannot start a thread: {error}"));
        Ok(Self { shared, thread: thread.transpose().map_err(cannot)? })
    }

    /// Returns the manifest that was stored last. The lease is not renewed meanwhile.
    pub(crate) fn current(&self) -> MappedMutexGuard<'_, Manifest> {
        MutexGuard::map(self.shared.object.lock(), ManifestObject::current_mut)
    }

    /// Replaces the manifest like [`ManifestObject::replace`].
    pub(crate) fn replace(&self, next: Manifest) -> Result<()> {
        self.shared.object.lock().replace(next)
    }
}

impl Shared {
    /// Renews the lease, unless a round has replaced the manifest meanwhile.
    pub(crate) fn renew_if_due(&self, lease: &Lease) -> Result<()> {
        let mut object = self.object.lock();
        if !lease.until_renewal().is_zero() {
            return Ok(());
        }
        object.renew()
    }

    /// Renews the lease until the manifest is dropped, or another process owns the copy.
    fn renew(&self, lease: &Lease, on_error: &impl Fn(&Error)) {
        let pause = (lease.length() / 20).max(PAUSE_MIN);
        let mut has_failed = false;
        loop {
            let wait = lease.until_renewal().max(if has_failed { pause } else { Duration::ZERO });
            let mut is_stopping = self.is_stopping.lock();
            if !*is_stopping {
                self.stop.wait_for(&mut is_stopping, wait);
            }
            if *is_stopping {
                return;
            }
            drop(is_stopping);
            let renewed = self.renew_if_due(lease);
            has_failed = renewed.is_err();
            if let Err(error) = renewed {
                on_error(&error);
                if error.is_final() {
                    return;
                }
            }
        }
    }
}

impl Drop for OwnedManifest {
    fn drop(&mut self) {
        *self.shared.is_stopping.lock() = true;
        self.shared.stop.notify_all();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}
