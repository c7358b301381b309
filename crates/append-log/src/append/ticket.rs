//! Waiting for a record: in a call, or as a future.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::append::commit::Shared;
use crate::error::Result;
use crate::lsn::Position;

/// A record that is on its way to the medium.
///
/// It is waited for by [`Ticket::wait`] or, under any runtime, by `.await`. One that is let go
/// without waiting reaches the medium soon all the same; one that is merely held may stay in
/// memory until a later record is waited for, or [`Ticket::begin`] is called.
#[derive(Debug)]
#[must_use = "the record is durable only when wait() has returned"]
pub struct Ticket {
    shared: Arc<Shared>,
    at: Position,
    /// The number of its batch.
    generation: u64,
    is_settled: bool,
}

impl Ticket {
    pub(crate) fn new(shared: Arc<Shared>, at: Position, generation: u64) -> Self {
        Self { shared, at, generation, is_settled: false }
    }

    /// Where the record is going to be.
    #[must_use]
    pub fn position(&self) -> Position {
        self.at
    }

    /// Lets the log's own thread begin with it now, while the caller does something else.
    pub fn begin(&self) {
        let mut state = self.shared.state.lock();
        if state.generation == self.generation {
            self.shared.want_commit(&mut state);
        }
    }

    /// Waits until the record is on the medium, and tells where.
    ///
    /// # Errors
    /// [`crate::Error::Latched`] when a write or sync failed: whether the record survives is then
    /// known only after the log is opened again.
    ///
    /// # Durability
    /// When this returns `Ok`, the record and all before it survive a power cut.
    pub fn wait(mut self) -> Result<Position> {
        self.is_settled = true;
        self.shared.wait_for(self.generation)?;
        Ok(self.at)
    }
}

/// The same as [`Ticket::wait`], without a thread that waits: the log's own thread carries out
/// the batch. Dropping the future does not take back the record.
impl Future for Ticket {
    type Output = Result<Position>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.state.lock();
        let outcome = if state.is_committed(self.generation) {
            Ok(self.at)
        } else if let Err(latched) = state.check_latch() {
            Err(latched)
        } else {
            state.wake_at(self.generation, context.waker());
            if state.generation == self.generation {
                shared.want_commit(&mut state);
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
            self.begin();
        }
    }
}
