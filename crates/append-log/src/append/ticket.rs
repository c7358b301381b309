//! Defines the handle with which a thread or a future waits until a record is durable.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::append::commit::Shared;
use crate::error::Result;
use crate::lsn::Position;

/// A handle to an appended record that may not be durable yet.
///
/// A thread waits for the record with [`Ticket::wait`], a future with `.await` under any runtime,
/// because the log uses no runtime's timer or I/O driver. The log calls wakers without holding a
/// lock, on any thread that is in a call to the log or on its commit thread. A waker may call any
/// function in this crate. If a waker panics, the other wakers are still called.
///
/// If the ticket is dropped, the commit thread writes the record soon. While the ticket is neither
/// dropped nor waited for, the record may stay in memory until [`Ticket::request_commit`] is called
/// or the log commits a later record.
#[derive(Debug)]
#[must_use = "the record is durable only when wait() has returned"]
pub struct Ticket {
    shared: Arc<Shared>,
    at: Position,
    /// The record's batch number.
    generation: u64,
    is_settled: bool,
}

impl Ticket {
    pub(crate) fn new(shared: Arc<Shared>, at: Position, generation: u64) -> Self {
        Self { shared, at, generation, is_settled: false }
    }

    /// Returns the record's position, with which it can be read.
    #[must_use]
    pub fn position(&self) -> Position {
        self.at
    }

    /// Starts writing the record on the commit thread, without waiting for it.
    pub fn request_commit(&self) {
        if self.shared.acknowledged.has(self.generation) {
            return;
        }
        let mut state = self.shared.state.lock();
        if state.generation == self.generation {
            self.shared.request_commit(&mut state);
        }
    }

    /// Waits until the record is durable, and returns its position.
    ///
    /// # Errors
    /// Returns [`crate::Error::Latched`] if a write or sync failed. Whether the record survived is
    /// then known only after the log was opened again.
    ///
    /// # Durability
    /// When this returns `Ok`, the record and all records before it survive a power cut.
    pub fn wait(mut self) -> Result<Position> {
        self.is_settled = true;
        self.shared.wait_unlocked(self.generation)?;
        Ok(self.at)
    }
}

/// Resolves like [`Ticket::wait`] without blocking a thread: the commit thread writes the batch.
/// Dropping the future does not remove the record.
impl Future for Ticket {
    type Output = Result<Position>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.shared.acknowledged.has(self.generation) {
            self.is_settled = true;
            return Poll::Ready(Ok(self.at));
        }
        let shared = Arc::clone(&self.shared);
        // Cloning a waker runs the caller's code, which must not happen under the lock.
        let waker = context.waker().clone();
        let mut state = shared.state.lock();
        let outcome = if state.is_committed(self.generation) {
            Ok(self.at)
        } else if let Err(latched) = state.check_latch() {
            Err(latched)
        } else {
            state.wakers.register_committed(self.generation, waker);
            if state.generation == self.generation {
                shared.request_commit(&mut state);
            }
            return Poll::Pending;
        };
        self.is_settled = true;
        Poll::Ready(outcome)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.is_settled {
            self.request_commit();
        }
    }
}
