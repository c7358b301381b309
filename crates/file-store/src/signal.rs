//! Waking the background thread.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// A flag that one thread waits for. Set several times before it looks, it counts once.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_set: bool,
    is_stopped: bool,
}

impl Signal {
    /// Wakes the thread, now or when it waits next.
    pub(crate) fn set(&self) {
        self.state.lock().is_set = true;
        self.changed.notify_all();
    }

    /// Lets every wait end from now on.
    pub(crate) fn stop(&self) {
        self.state.lock().is_stopped = true;
        self.changed.notify_all();
    }

    /// Waits until it is set, and resets it; returns `false` if it was stopped.
    pub(crate) fn wait(&self) -> bool {
        let mut state = self.state.lock();
        while !state.is_set && !state.is_stopped {
            self.changed.wait(&mut state);
        }
        state.is_set = false;
        !state.is_stopped
    }

    /// Waits for so long, or until it is set or stopped; it stays set.
    pub(crate) fn pause(&self, time: Duration) {
        let mut state = self.state.lock();
        if !state.is_set && !state.is_stopped {
            self.changed.wait_for(&mut state, time);
        }
    }
}
