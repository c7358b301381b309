//! The state of one connection, changed by its task and read by its listener.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use s3s::StdError;
use tokio::sync::Notify;

use super::peer::Peer;
use crate::memory::PeerMemory;

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

/// An open connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(super) id: u64,
    pub(super) peer: Peer,
    pub(super) memory: PeerMemory,
    /// A [`Phase`], and since when: milliseconds after `epoch`.
    state: AtomicU64,
    epoch: Instant,
    /// The client does not take what is sent. The kernel ends that (`TCP_USER_TIMEOUT`).
    is_blocked: AtomicBool,
    closing: Notify,
}

impl Connection {
    pub(super) fn new(id: u64, peer: Peer, memory: PeerMemory, epoch: Instant) -> Self {
        Self {
            id,
            peer,
            memory,
            state: AtomicU64::new(state(Phase::Head, elapsed_ms(epoch))),
            epoch,
            is_blocked: AtomicBool::new(false),
            closing: Notify::new(),
        }
    }

    /// The share of memory of its peer.
    pub(crate) fn memory(&self) -> PeerMemory {
        self.memory.clone()
    }

    /// Notes that bytes were received.
    pub(super) fn received(&self) {
        if phase(self.state.load(Relaxed)) == Phase::Idle {
            self.change(|phase| (phase == Phase::Idle).then_some(Phase::Head));
        }
    }

    /// Notes whether the socket took what was sent.
    pub(super) fn sent(&self, is_blocked: bool) {
        if self.is_blocked.load(Relaxed) != is_blocked {
            // The time until the next request begins only now.
            self.change(|phase| (phase == Phase::Idle).then_some(Phase::Idle));
            self.is_blocked.store(is_blocked, Relaxed);
        }
    }

    /// Begins to answer a request. It ends when the last clone of the result is dropped.
    ///
    /// # Errors
    /// If the connection is being closed: the request must not be executed.
    pub(crate) fn begin(self: &Arc<Self>) -> Result<Arc<Exchange>, StdError> {
        if self.change(|phase| (phase != Phase::Closing).then_some(Phase::Busy)) {
            Ok(Arc::new(Exchange(Arc::clone(self))))
        } else {
            Err("the server is closing the connection".into())
        }
    }

    /// Waits until the server wants it closed.
    pub(crate) async fn closing(&self) {
        self.closing.notified().await;
    }

    /// Closes it if it waits for a request; `false` if it no longer does.
    pub(super) fn close(&self) -> bool {
        let is_closed = self.change(|phase| match phase {
            Phase::Head | Phase::Idle => Some(Phase::Closing),
            Phase::Busy | Phase::Closing => None,
        });
        if is_closed {
            self.closing.notify_one();
        }
        is_closed
    }

    /// The phase and since when, if it waits for a request.
    pub(super) fn waiting(&self) -> Option<(Phase, u64)> {
        let state = self.state.load(Relaxed);
        let phase = phase(state);
        let waits = matches!(phase, Phase::Head | Phase::Idle) && !self.is_blocked.load(Relaxed);
        waits.then_some((phase, state >> PHASE_BITS))
    }

    /// Moves to the phase that `next` returns, from now on; `false` if it returns none.
    fn change(&self, next: impl Fn(Phase) -> Option<Phase>) -> bool {
        let now_ms = elapsed_ms(self.epoch);
        let update = |old| Some(state(next(phase(old))?, now_ms));
        self.state.fetch_update(Relaxed, Relaxed, update).is_ok()
    }
}

/// A request that is being answered, or whose body is still being received.
#[derive(Debug)]
pub(crate) struct Exchange(Arc<Connection>);

impl Drop for Exchange {
    fn drop(&mut self) {
        self.0.change(|phase| (phase == Phase::Busy).then_some(Phase::Idle));
    }
}

/// Milliseconds since `epoch`.
pub(super) fn elapsed_ms(epoch: Instant) -> u64 {
    u64::try_from(epoch.elapsed().as_millis()).unwrap_or(u64::MAX) & (u64::MAX >> PHASE_BITS)
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

    fn connection() -> Arc<Connection> {
        let peer = Peer::of(Ipv4Addr::LOCALHOST.into());
        Arc::new(Connection::new(0, peer, PeerMemory::new(1), Instant::now()))
    }

    fn waits_for(connection: &Connection) -> Option<Phase> {
        connection.waiting().map(|(phase, _)| phase)
    }

    #[test]
    fn a_connection_waits_except_while_a_request_is_answered() {
        let connection = connection();
        assert_eq!(waits_for(&connection), Some(Phase::Head));
        let exchange = connection.begin().unwrap();
        connection.received();
        let body = Arc::clone(&exchange);
        drop(exchange);
        assert_eq!(waits_for(&connection), None, "its body is still being received");
        assert!(!connection.close());
        drop(body);
        assert_eq!(waits_for(&connection), Some(Phase::Idle));
        connection.received();
        assert_eq!(waits_for(&connection), Some(Phase::Head));
    }

    #[test]
    fn a_connection_whose_answer_is_not_taken_does_not_wait() {
        let connection = connection();
        drop(connection.begin().unwrap());
        connection.sent(true);
        assert_eq!(waits_for(&connection), None);
        connection.sent(false);
        assert_eq!(waits_for(&connection), Some(Phase::Idle));
    }

    #[test]
    fn a_request_that_arrives_after_the_decision_to_close_is_not_executed() {
        let connection = connection();
        assert!(connection.close());
        assert!(connection.begin().is_err());
        assert!(!connection.close(), "it is closed once");
        assert_eq!(waits_for(&connection), None);
    }
}
