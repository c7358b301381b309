//! A signal that wakes a background thread.

use std::time::Duration;

use haul_sync::{Condvar, Mutex, now, wait_briefly};

/// A flag on which one thread waits. Setting it repeatedly before the thread checks it counts once.
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
    /// Wakes the thread, or its next wait.
    pub(crate) fn set(&self) {
        self.state.lock().is_set = true;
        self.changed.notify_all();
    }

    /// Ends the current wait and all later ones.
    pub(crate) fn stop(&self) {
        self.state.lock().is_stopped = true;
        self.changed.notify_all();
    }

    /// Waits until the flag is set, or for `at_most`, and resets it. Returns `false` if it was
    /// stopped.
    pub(crate) fn wait(&self, at_most: Option<Duration>) -> bool {
        let until = at_most.map(|time| now() + time);
        let mut state = self.state.lock();
        while !state.is_set && !state.is_stopped {
            match until {
                None => self.changed.wait(&mut state),
                Some(until) if self.changed.wait_until(&mut state, until).timed_out() => break,
                Some(_) => {}
            }
        }
        state.is_set = false;
        !state.is_stopped
    }

    /// Waits for `time`, or until the flag is set or stopped. Does not reset the flag.
    pub(crate) fn pause(&self, time: Duration) {
        let mut state = self.state.lock();
        if !state.is_set && !state.is_stopped {
            wait_briefly(&self.changed, &mut state, now() + time);
        }
    }
}
