//! A handle that stops a standby, makes it take over, and returns its state.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::error::Error;

/// Controls a standby from other threads.
#[derive(Debug, Default)]
pub struct StandbyControl {
    state: Mutex<State>,
    requested: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_stopping: bool,
    is_takeover_requested: bool,
    description: String,
    last_error: Option<String>,
    /// The part of the state whose changes are events.
    event: String,
}

impl StandbyControl {
    /// Makes [`crate::Standby::run`] return.
    pub fn stop(&self) {
        self.state.lock().is_stopping = true;
        self.requested.notify_all();
    }

    /// Makes the standby take over, even if the copy's owner still renews its lease or has none.
    /// The owner is fenced. If it has a lease, the takeover waits until this has run out.
    pub fn take_over(&self) {
        self.state.lock().is_takeover_requested = true;
        self.requested.notify_all();
    }

    /// Returns a description of the state, with the last error if the last attempt failed.
    #[must_use]
    pub fn state(&self) -> String {
        let state = self.state.lock();
        let description = match &state.description[..] {
            "" => "reading the copy",
            description => description,
        };
        let error = state.last_error.as_ref().map(|error| format!("; {error}"));
        format!("{description}{}", error.unwrap_or_default())
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.state.lock().is_stopping
    }

    pub(super) fn is_takeover_requested(&self) -> bool {
        self.state.lock().is_takeover_requested
    }

    /// Sets the state, and returns `true` if its event differs from the one before.
    pub(super) fn set_state(&self, event: &str, details: &str) -> bool {
        let mut state = self.state.lock();
        (state.description, state.last_error) = (format!("{event}{details}"), None);
        let is_new = state.event != event;
        event.clone_into(&mut state.event);
        is_new
    }

    pub(super) fn note_error(&self, error: &Error) {
        self.state.lock().last_error = Some(haul_disk::error_chain(error).to_string());
    }

    /// Waits for `timeout`, or until a stop or a takeover is requested.
    pub(super) fn wait(&self, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        let mut state = self.state.lock();
        let had_request = state.is_takeover_requested;
        while !state.is_stopping && state.is_takeover_requested == had_request {
            if self.requested.wait_until(&mut state, deadline).timed_out() {
                break;
            }
        }
    }
}
