//! How others stop a thread and see what it does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use mio::Waker;

/// What a thread did so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReactorStats {
    /// Connections accepted.
    pub accepted: u64,
    /// Connections over.
    pub closed: u64,
    /// How often no connection could be accepted though one waited: no descriptors, no memory.
    pub accept_failures: u64,
    /// How often accepting was put off because there were enough connections.
    pub held_back: u64,
    /// How often the kernel was asked what is ready.
    pub turns: u64,
}

/// What the thread and its handles share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) is_draining: AtomicBool,
    pub(crate) is_stopping: AtomicBool,
    pub(crate) accepted: AtomicU64,
    pub(crate) closed: AtomicU64,
    pub(crate) accept_failures: AtomicU64,
    pub(crate) held_back: AtomicU64,
    pub(crate) turns: AtomicU64,
}

/// A thread's reactor, from outside.
#[derive(Debug, Clone)]
pub struct Handle {
    pub(crate) shared: Arc<Shared>,
    pub(crate) waker: Arc<Waker>,
}

impl Handle {
    /// Accepts no more, and ends when the last connection has: each is told to begin nothing new.
    pub fn drain(&self) {
        self.shared.is_draining.store(true, Relaxed);
        self.wake();
    }

    /// Ends at once; the connections that are left are closed.
    pub fn stop(&self) {
        self.shared.is_stopping.store(true, Relaxed);
        self.wake();
    }

    fn wake(&self) {
        // A thread that cannot be woken looks by itself, a tick later, while it has anything to
        // wait for.
        self.waker.wake().ok();
    }

    /// What it did so far.
    pub fn stats(&self) -> ReactorStats {
        let Shared { accepted, closed, accept_failures, held_back, turns, .. } = &*self.shared;
        ReactorStats {
            accepted: accepted.load(Relaxed),
            closed: closed.load(Relaxed),
            accept_failures: accept_failures.load(Relaxed),
            held_back: held_back.load(Relaxed),
            turns: turns.load(Relaxed),
        }
    }
}
