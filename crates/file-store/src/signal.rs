//! Waking the background thread.

use std::time::{Duration, Instant};

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

    /// Waits until it is set, at most for so long, and resets it; returns `false` if it was stopped.
    pub(crate) fn wait(&self, at_most: Option<Duration>) -> bool {
        let until = at_most.map(|time| Instant::now() + time);
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

    /// Waits for so long, or until it is set or stopped; it stays set.
    pub(crate) fn pause(&self, time: Duration) {
        let mut state = self.state.lock();
        if !state.is_set && !state.is_stopped {
            self.changed.wait_for(&mut state, time);
        }
    }
}
