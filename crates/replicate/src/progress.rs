//! The copy's end, for which other threads wait.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use haul_append_log::Lsn;
use haul_file_store::{Replication, ReplicationStatus};
use parking_lot::{Condvar, Mutex};

use crate::error::{Error, Result};
use crate::lease::{Clock, Lease};
use crate::remote::Remote;

/// The end of the log in the copy, shared by the shipping thread and the threads that wait for it.
///
/// As a file store's [`Replication`], it makes each call that changes the store wait for the copy.
#[derive(Debug)]
pub struct Progress {
    acknowledge: Acknowledge,
    state: Mutex<State>,
    /// Signals that the end has moved or shipping has stopped.
    moved: Condvar,
    /// Signals that a thread waits for the copy, or that shipping is to stop.
    requested: Condvar,
    /// The lease without which nothing is acknowledged.
    lease: OnceLock<Arc<Lease>>,
}

#[derive(Debug, Default)]
struct State {
    shipped: Lsn,
    /// The end that a thread waits for.
    wanted: Lsn,
    is_stopping: bool,
    /// The reason why shipping has ended.
    stopped: Option<String>,
    last_error: Option<String>,
    /// The time since which the log has records that are not in the copy.
    behind_since: Option<Instant>,
    /// The remote store, for its counters.
    remote: Option<Remote>,
    /// `true` while an earlier owner's lease may not have run out.
    is_waiting: bool,
}

/// While this value exists, the progress acknowledges nothing.
#[derive(Debug)]
pub(crate) struct AcknowledgementPause<'a>(&'a Progress);

impl Drop for AcknowledgementPause<'_> {
    fn drop(&mut self) {
        self.0.state.lock().is_waiting = false;
    }
}

/// The storage on which a change must be durable before the store acknowledges it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Acknowledge {
    /// The local log. The store stops acknowledging only when another process owns the copy.
    Local,
    /// The copy, too. A thread waits for it at most this long.
    Remote(Duration),
}

impl Progress {
    /// Returns the progress for a replica whose copy a store waits for, for at most `timeout` each
    /// time.
    #[must_use]
    pub fn new(timeout: Duration) -> Self {
        Self::with(Acknowledge::Remote(timeout))
    }

    /// Returns the progress for a replica whose copy a store does not wait for. The store rejects
    /// changes once another process owns the copy.
    #[must_use]
    pub fn without_waiting() -> Self {
        Self::with(Acknowledge::Local)
    }

    /// `true` if no store waits for the copy.
    pub(crate) fn is_local(&self) -> bool {
        self.acknowledge == Acknowledge::Local
    }

    fn with(acknowledge: Acknowledge) -> Self {
        let (moved, requested) = (Condvar::new(), Condvar::new());
        let lease = OnceLock::new();
        Self { acknowledge, state: Mutex::default(), moved, requested, lease }
    }

    /// Sets the length of the lease without which nothing is acknowledged, before the copy is
    /// claimed.
    pub(crate) fn set_lease(&self, length: Option<Duration>, clock: &Arc<dyn Clock>) {
        if let Some(length) = length {
            self.lease.get_or_init(|| Arc::new(Lease::new(length, Arc::clone(clock))));
        }
    }

    /// Acknowledges nothing until the result is dropped, because an earlier owner's lease may not
    /// have run out. If this process has no lease, it has promised nothing, and continues to
    /// acknowledge.
    pub(crate) fn pause_acknowledgements(&self) -> AcknowledgementPause<'_> {
        self.state.lock().is_waiting = self.lease().is_some();
        AcknowledgementPause(self)
    }

    pub(crate) fn stopped(&self) -> Option<String> {
        self.state.lock().stopped.clone()
    }

    /// Returns the copy's lease, if the owner promises one.
    pub(crate) fn lease(&self) -> Option<&Arc<Lease>> {
        self.lease.get()
    }

    /// Records a failed attempt. A final failure ends shipping.
    pub(crate) fn note_failure(&self, error: &Error) {
        self.note_error(error);
        if error.is_final() {
            self.end(haul_disk::error_chain(error).to_string());
        }
    }

    /// Waits until the copy contains the log before `end`, for at most `timeout`.
    ///
    /// # Errors
    /// A text if shipping has ended, or if the time is over; it contains the last error.
    pub fn wait_for(&self, end: Lsn, timeout: Duration) -> std::result::Result<(), String> {
        let deadline = Instant::now().checked_add(timeout);
        let mut state = self.state.lock();
        while state.shipped < end {
            if let Some(reason) = &state.stopped {
                return Err(reason.clone());
            }
            if state.wanted < end {
                state.wanted = end;
                self.requested.notify_all();
            }
            let Some(deadline) = deadline else {
                self.moved.wait(&mut state);
                continue;
            };
            if self.moved.wait_until(&mut state, deadline).timed_out() && state.shipped < end {
                let seconds = timeout.as_secs_f64();
                let reason = state.last_error.as_deref().unwrap_or("the remote store is slow");
                return Err(format!("not confirmed within {seconds} s: {reason}"));
            }
        }
        Ok(())
    }

    /// Publishes the copy's end, and wakes the threads that waited for it. `is_behind` is `true` if
    /// the log has further durable records by now.
    pub(crate) fn advance(&self, shipped: Lsn, is_behind: bool) {
        let mut state = self.state.lock();
        state.shipped = shipped;
        state.last_error = None;
        state.behind_since = is_behind.then(Instant::now);
        self.moved.notify_all();
    }

    /// Records that the log has no records after the published end.
    pub(crate) fn note_current(&self) {
        let mut state = self.state.lock();
        (state.last_error, state.behind_since) = (None, None);
    }

    /// Sets the remote store whose counters the status contains.
    pub(crate) fn attach(&self, remote: &Remote) {
        self.state.lock().remote = Some(remote.clone());
    }

    /// Records that the log has records that are not in the copy.
    pub(crate) fn note_behind(&self) {
        self.state.lock().behind_since.get_or_insert_with(Instant::now);
    }

    pub(crate) fn note_error(&self, error: &Error) {
        self.state.lock().last_error = Some(haul_disk::error_chain(error).to_string());
    }

    /// Ends shipping: all waiting threads get the reason.
    pub(crate) fn end(&self, reason: String) {
        self.state.lock().stopped.get_or_insert(reason);
        self.moved.notify_all();
    }

    /// Waits until a thread waits for a later end than `shipped`, shipping is to stop, or `timeout`
    /// is over.
    pub(crate) fn wait_for_request(&self, timeout: Duration) -> Request {
        let deadline = Instant::now().checked_add(timeout);
        let mut state = self.state.lock();
        loop {
            if state.is_stopping {
                return Request::Stop;
            }
            if state.wanted > state.shipped {
                return Request::Ship;
            }
            let Some(deadline) = deadline else {
                self.requested.wait(&mut state);
                continue;
            };
            if self.requested.wait_until(&mut state, deadline).timed_out() {
                return Request::None;
            }
        }
    }

    /// Waits for `timeout`, or until shipping is to stop.
    pub(crate) fn pause(&self, timeout: Duration) -> bool {
        let deadline = Instant::now().checked_add(timeout);
        let mut state = self.state.lock();
        while !state.is_stopping {
            let Some(deadline) = deadline else { break };
            if self.requested.wait_until(&mut state, deadline).timed_out() {
                break;
            }
        }
        state.is_stopping
    }

    /// Makes shipping end after a last attempt.
    pub(crate) fn request_stop(&self) {
        self.state.lock().is_stopping = true;
        self.requested.notify_all();
    }

    /// Returns an error if the copy does not contain the log before `end`.
    pub(crate) fn check(&self, end: Lsn) -> Result<()> {
        if self.state.lock().shipped >= end { Ok(()) } else { Err(Error::Stopped { end }) }
    }
}

/// Why the shipping thread woke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    /// A thread waits for the copy.
    Ship,
    /// Shipping is to stop.
    Stop,
    /// The interval between two shipments has passed.
    None,
}

impl Replication for Progress {
    fn wait(&self, end: Lsn) -> std::result::Result<(), String> {
        if let Acknowledge::Remote(timeout) = self.acknowledge {
            self.wait_for(end, timeout)?;
        }
        self.check_now()
    }

    fn check_now(&self) -> std::result::Result<(), String> {
        if self.is_local()
            && let Some(reason) = &self.state.lock().stopped
        {
            return Err(reason.clone());
        }
        if self.state.lock().is_waiting {
            return Err("the lease of the earlier owner may not have run out".to_owned());
        }
        self.lease().map_or(Ok(()), |lease| lease.check())
    }

    fn may_wait(&self) -> bool {
        !self.is_local() || self.check_now().is_err()
    }

    fn status(&self) -> ReplicationStatus {
        let state = self.state.lock();
        let remote = state.remote.as_ref();
        ReplicationStatus {
            copied: state.shipped,
            behind: state.behind_since.map(|since| since.elapsed()),
            requests: remote.map_or(0, Remote::requests),
            sent_bytes: remote.map_or(0, Remote::sent_bytes),
            last_error: state.last_error.clone(),
            stopped: state.stopped.clone(),
            lease: self.lease().map(|lease| lease.remaining()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::SystemClock;

    #[test]
    fn nothing_is_acknowledged_while_an_earlier_lease_may_run() {
        let progress = Progress::without_waiting();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        progress.set_lease(Some(Duration::from_secs(3600)), &clock);
        let lease = progress.lease().unwrap();
        lease.renew(lease.now());
        assert!(progress.check_now().is_ok() && !progress.may_wait());
        let refusal = progress.pause_acknowledgements();
        assert!(progress.check_now().is_err() && progress.may_wait());
        assert!(progress.wait(Lsn::default()).is_err());
        drop(refusal);
        assert!(progress.check_now().is_ok());
    }
}
