//! A signal that wakes and stops the merge thread.

use std::sync::atomic::Ordering;

use haul_sync::{AtomicBool, Condvar, Mutex};

#[derive(Debug, Default)]
pub(crate) struct MergeSignal {
    is_awake: Mutex<bool>,
    changed: Condvar,
    is_stopping: AtomicBool,
}

impl MergeSignal {
    /// Wakes the thread after a run was added.
    pub(crate) fn wake(&self) {
        *self.is_awake.lock() = true;
        self.changed.notify_all();
    }

    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.wake();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    pub(crate) fn wait(&self) {
        let mut is_awake = self.is_awake.lock();
        while !*is_awake {
            self.changed.wait(&mut is_awake);
        }
        *is_awake = false;
    }
}
