//! Models the wake-ups of a poller, and polls its sockets without waiting.
//!
//! A thread that waits is woken only by the waker, not by a socket: in a test, all sockets must be
//! ready before the reactor waits for them.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use haul_sync::{Condvar, Mutex, now, wait_briefly};
use mio::{Events, Registry};

/// A poller.
#[derive(Debug)]
pub(crate) struct Poll {
    sockets: mio::Poll,
    wake_up: Arc<WakeUp>,
}

/// A flag that stays set until the poller returns, as the counter of an `eventfd(2)` does.
#[derive(Debug, Default)]
struct WakeUp {
    is_set: Mutex<bool>,
    changed: Condvar,
}

/// The waker of a [`Poll`].
#[derive(Debug)]
pub(crate) struct Waker(Arc<WakeUp>);

impl Poll {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { sockets: mio::Poll::new()?, wake_up: Arc::default() })
    }

    pub(crate) fn registry(&self) -> &Registry {
        self.sockets.registry()
    }

    /// Waits until a socket is ready, until the waker was called, or until the timeout.
    pub(crate) fn poll(
        &mut self,
        events: &mut Events,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        self.sockets.poll(events, Some(Duration::ZERO))?;
        let WakeUp { is_set, changed } = &*self.wake_up;
        let mut is_set = is_set.lock();
        match timeout {
            None if events.is_empty() => {
                while !*is_set {
                    changed.wait(&mut is_set);
                }
            }
            Some(time) if events.is_empty() && !time.is_zero() && !*is_set => {
                wait_briefly(changed, &mut is_set, now() + time);
            }
            _ => {}
        }
        *is_set = false;
        Ok(())
    }
}

impl Waker {
    #[expect(clippy::unnecessary_wraps, reason = "the interface of mio's waker")]
    pub(super) fn new(poll: &Poll, _: mio::Token) -> io::Result<Self> {
        Ok(Self(Arc::clone(&poll.wake_up)))
    }

    #[expect(clippy::unnecessary_wraps, reason = "the interface of mio's waker")]
    pub(crate) fn wake(&self) -> io::Result<()> {
        *self.0.is_set.lock() = true;
        self.0.changed.notify_one();
        Ok(())
    }
}
