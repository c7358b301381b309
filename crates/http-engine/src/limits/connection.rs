//! The phase of one connection, changed by its own thread and read by the threads that need its
//! place.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use haul_reactor::{Clock, Peer};

/// The bits of [`Connection::state`] that hold the phase; the others hold milliseconds.
const PHASE_BITS: u32 = 2;

/// A step in the life of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The head of a request is expected: since the connection was accepted, or since the first
    /// byte after a request.
    Head,
    /// Nothing was received since the last request was answered.
    Idle,
    /// A request is being answered.
    Busy,
    /// The server closes it.
    Closing,
}

impl Phase {
    const ALL: [Self; 1 << PHASE_BITS] = [Self::Head, Self::Idle, Self::Busy, Self::Closing];
}

/// The time since the creation of a table of connections.
#[derive(Debug, Clone)]
pub(super) struct Stopwatch {
    clock: Clock,
    started: Instant,
}

impl Stopwatch {
    pub(super) fn start(clock: Clock) -> Self {
        Self { started: clock.now(), clock }
    }

    pub(super) fn elapsed_ms(&self) -> u64 {
        let elapsed = self.clock.now().saturating_duration_since(self.started);
        u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX) & (u64::MAX >> PHASE_BITS)
    }
}

/// An open connection.
pub(crate) struct Connection<P> {
    pub(super) id: u64,
    pub(super) peer: Peer,
    /// State that the connections of a peer share.
    pub(super) peer_state: P,
    /// A [`Phase`], and since when: milliseconds of `stopwatch`.
    state: AtomicU64,
    stopwatch: Stopwatch,
    /// Wakes the thread of the connection, so that it closes the connection.
    close: Box<dyn Fn() + Send + Sync>,
}

impl<P> Connection<P> {
    pub(super) fn new(
        id: u64,
        peer: Peer,
        peer_state: P,
        stopwatch: Stopwatch,
        close: Box<dyn Fn() + Send + Sync>,
    ) -> Self {
        let state = AtomicU64::new(state(Phase::Head, stopwatch.elapsed_ms()));
        Self { id, peer, peer_state, state, stopwatch, close }
    }

    /// Notes that the head of a request has begun to arrive.
    pub(crate) fn begin_head(&self) {
        let now_ms = self.stopwatch.elapsed_ms();
        self.change(now_ms, |phase| (phase == Phase::Idle).then_some(Phase::Head));
    }

    /// Begins to answer a request. It ends when the result is dropped; `None` if the connection is
    /// being closed, so that the request must not be executed.
    pub(crate) fn begin(self: &Arc<Self>) -> Option<Busy<P>> {
        // The start of this phase is not needed, so no clock is read.
        let is_begun = self.change(0, |phase| (phase != Phase::Closing).then_some(Phase::Busy));
        is_begun.then(|| Busy(Arc::clone(self)))
    }

    /// Returns `true` if another thread decided to close the connection.
    pub(crate) fn is_closing(&self) -> bool {
        phase(self.state.load(Relaxed)) == Phase::Closing
    }

    /// Closes it if it waits for a request; `false` if it no longer does.
    pub(super) fn close(&self) -> bool {
        let is_closed = self.change(0, |phase| match phase {
            Phase::Head | Phase::Idle => Some(Phase::Closing),
            Phase::Busy | Phase::Closing => None,
        });
        if is_closed {
            (self.close)();
        }
        is_closed
    }

    /// The time since which it waits for a request, if it does.
    pub(super) fn waiting_since_ms(&self) -> Option<u64> {
        let state = self.state.load(Relaxed);
        matches!(phase(state), Phase::Head | Phase::Idle).then_some(state >> PHASE_BITS)
    }

    /// Moves to the phase that `next` returns, from `now_ms` on; `false` if it returns none.
    fn change(&self, now_ms: u64, next: impl Fn(Phase) -> Option<Phase>) -> bool {
        let update = |old| Some(state(next(phase(old))?, now_ms));
        self.state.fetch_update(Relaxed, Relaxed, update).is_ok()
    }
}

/// The time in which requests are being answered, or a body is still being received.
pub(crate) struct Busy<P>(Arc<Connection<P>>);

impl<P> Drop for Busy<P> {
    fn drop(&mut self) {
        let now_ms = self.0.stopwatch.elapsed_ms();
        self.0.change(now_ms, |phase| (phase == Phase::Busy).then_some(Phase::Idle));
    }
}

fn state(phase: Phase, since_ms: u64) -> u64 {
    since_ms << PHASE_BITS | phase as u64
}

fn phase(state: u64) -> Phase {
    Phase::ALL[(state & ((1 << PHASE_BITS) - 1)) as usize]
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn connection() -> Arc<Connection<()>> {
        let peer = Peer::of(Ipv4Addr::LOCALHOST.into());
        let stopwatch = Stopwatch::start(Clock::System);
        Arc::new(Connection::new(0, peer, (), stopwatch, Box::new(|| ())))
    }

    #[test]
    fn connection_waits_except_during_a_request() {
        let connection = connection();
        assert!(connection.waiting_since_ms().is_some());
        let busy = connection.begin().unwrap();
        connection.begin_head();
        assert!(connection.waiting_since_ms().is_none());
        assert!(!connection.close());
        drop(busy);
        assert!(connection.waiting_since_ms().is_some());
        connection.begin_head();
        assert!(connection.waiting_since_ms().is_some());
    }

    #[test]
    fn request_after_the_decision_to_close_is_not_executed() {
        let connection = connection();
        assert!(connection.close() && connection.is_closing());
        assert!(connection.begin().is_none());
        assert!(!connection.close(), "it is closed once");
        assert!(connection.waiting_since_ms().is_none());
    }
}
