//! Controls a reactor from other threads, and returns its statistics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use haul_sync::AtomicBool;

use crate::poller::Waker;

/// Counters of a reactor since it was created.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReactorStats {
    /// Connections accepted.
    pub accepted: u64,
    /// Connections closed.
    pub closed: u64,
    /// Failures to accept a pending connection, for lack of descriptors or memory.
    pub accept_failures: u64,
    /// The number of times the reactor suspended accepting because the limit of connections was
    /// reached.
    pub accepts_deferred: u64,
    /// Iterations of the event loop, each with one call of `epoll_wait`.
    pub iterations: u64,
}

/// State shared by the reactor's thread and its handles.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) is_draining: AtomicBool,
    pub(crate) is_stopping: AtomicBool,
    pub(crate) accepted: AtomicU64,
    pub(crate) closed: AtomicU64,
    pub(crate) accept_failures: AtomicU64,
    pub(crate) accepts_deferred: AtomicU64,
    pub(crate) iterations: AtomicU64,
}

/// A handle to a reactor for other threads.
#[derive(Debug, Clone)]
pub struct Handle {
    pub(crate) shared: Arc<Shared>,
    pub(crate) waker: Arc<Waker>,
}

impl Handle {
    /// Stops accepting, sends [`Event::Drain`](crate::Event::Drain) to each connection, and ends
    /// the reactor when its last connection is closed.
    pub fn drain(&self) {
        self.shared.is_draining.store(true, Relaxed);
        self.wake();
    }

    /// Ends the reactor at once and closes its connections.
    pub fn stop(&self) {
        self.shared.is_stopping.store(true, Relaxed);
        self.wake();
    }

    fn wake(&self) {
        // An error is ignored: the thread then reads the flags in its next iteration.
        self.waker.wake().ok();
    }

    /// Returns the counters of the reactor.
    pub fn stats(&self) -> ReactorStats {
        let Shared { accepted, closed, accept_failures, accepts_deferred, iterations, .. } =
            &*self.shared;
        ReactorStats {
            accepted: accepted.load(Relaxed),
            closed: closed.load(Relaxed),
            accept_failures: accept_failures.load(Relaxed),
            accepts_deferred: accepts_deferred.load(Relaxed),
            iterations: iterations.load(Relaxed),
        }
    }
}
