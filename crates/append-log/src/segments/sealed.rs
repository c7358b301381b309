//! Queues the segments that were sealed, for the thread that reports them to the caller's hook.

use std::sync::Arc;

use haul_sync::Mutex;
use haul_sync::mpsc::{Receiver, Sender, channel};

use crate::segments::Segment;

/// The sealed segments for which the hook was not called yet; always empty if there is no hook.
#[derive(Debug, Default)]
pub(crate) struct SealedQueue(Mutex<Option<Sender<Arc<Segment>>>>);

impl SealedQueue {
    /// Adds a segment whose seal, or whose end in the header of a later segment, is durable. Does
    /// not block. The caller may hold the lock of the state.
    pub(crate) fn push(&self, segment: &Arc<Segment>) {
        if let Some(queue) = &*self.0.lock() {
            // The receiver exists until the queue was closed.
            drop(queue.send(Arc::clone(segment)));
        }
    }

    /// Opens the queue, and returns its receiver.
    pub(crate) fn open(&self) -> Receiver<Arc<Segment>> {
        let (sender, receiver) = channel();
        *self.0.lock() = Some(sender);
        receiver
    }

    /// Closes the queue. The receiver still gets the segments in it.
    pub(crate) fn close(&self) {
        self.0.lock().take();
    }
}
