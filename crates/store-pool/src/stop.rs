//! A request to stop.

use std::time::Duration;

use haul_sync::{Condvar, Mutex};

/// A request to stop, for which a thread can wait.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    is_requested: Mutex<bool>,
    requested: Condvar,
}

impl Stop {
    /// Makes the request.
    pub(crate) fn request(&self) {
        *self.is_requested.lock() = true;
        self.requested.notify_all();
    }

    /// Waits for the request for at most `time`. Returns `true` if it was made.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let mut is_requested = self.is_requested.lock();
        if !*is_requested {
            self.requested.wait_for(&mut is_requested, time);
        }
        *is_requested
    }

    pub(crate) fn is_requested(&self) -> bool {
        *self.is_requested.lock()
    }
}
