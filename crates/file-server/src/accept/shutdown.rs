//! Waits for the end of a server.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

/// The interval in which expired cache entries are removed.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

/// The requested and the actual end of a server.
#[derive(Debug, Default)]
pub(crate) struct Shutdown {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_requested: bool,
    is_immediate: bool,
    /// Serving threads that run.
    running: usize,
}

impl Shutdown {
    /// Requests the end; if `is_immediate`, without waiting for responses.
    pub(crate) fn request(&self, is_immediate: bool) {
        let mut state = self.state.lock();
        state.is_requested = true;
        state.is_immediate |= is_immediate;
        self.changed.notify_all();
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.state.lock().is_requested
    }

    pub(crate) fn add_thread(&self) {
        self.state.lock().running += 1;
    }

    /// Waits until the end is requested, and then until all threads have ended, for at most
    /// `drain_time`. The unexpected end of a thread ends the others. Calls `sweep` from time to time.
    pub(crate) fn wait(&self, drain_time: Duration, sweep: impl Fn()) {
        let mut state = self.state.lock();
        let all = state.running;
        while !state.is_requested && state.running == all {
            if self.changed.wait_for(&mut state, SWEEP_INTERVAL).timed_out() {
                MutexGuard::unlocked(&mut state, &sweep);
            }
        }
        let until = Instant::now() + drain_time;
        while state.is_requested && !state.is_immediate && state.running > 0 {
            if self.changed.wait_until(&mut state, until).timed_out() {
                return;
            }
        }
    }
}

/// Reports the end of a thread when it is dropped, also if the thread panics.
pub(crate) struct RunningThread<'a>(pub(crate) &'a Shutdown);

impl Drop for RunningThread<'_> {
    fn drop(&mut self) {
        self.0.state.lock().running -= 1;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_that_panics_has_ended() {
        let shutdown = Shutdown::default();
        shutdown.add_thread();
        shutdown.add_thread();
        let panicking = || {
            let _running = RunningThread(&shutdown);
            std::panic::resume_unwind(Box::new("as tested"))
        };
        let joined = std::thread::scope(|scope| scope.spawn::<_, ()>(panicking).join());
        assert!(joined.is_err());
        assert_eq!(shutdown.state.lock().running, 1);
    }
}
