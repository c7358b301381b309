//! Wakes a connection when a future of its request can make progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::AcqRel};
use std::task::Wake;

use haul_reactor::MessageSender;

/// A message of another thread to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// The future or the body of its response may make progress.
    Wake,
    /// Another connection needs its place.
    Close,
}

/// No thread drives the connection, and no message is queued for it.
const IDLE: u8 = 0;
/// The thread of the connection drives it, and will look here before it stops.
const DRIVEN: u8 = 1;
/// The future must be polled: a message is queued, or the thread drives the connection.
const NOTIFIED: u8 = 2;

/// The waker of one connection. Waking it sends at most one message until the connection is driven,
/// and none while it is driven.
pub(crate) struct Task {
    state: AtomicU8,
    sender: MessageSender<Message>,
}

impl Task {
    pub(crate) fn new(sender: MessageSender<Message>) -> Arc<Self> {
        Arc::new(Self { state: AtomicU8::new(IDLE), sender })
    }

    /// Notes that the connection is driven; returns `true` if it was woken since it was last driven.
    pub(crate) fn begin(&self) -> bool {
        self.state.swap(DRIVEN, AcqRel) == NOTIFIED
    }

    /// Notes that the connection waits; returns `false` if it was woken meanwhile, and must be
    /// driven further.
    pub(crate) fn end(&self) -> bool {
        self.state.swap(IDLE, AcqRel) == DRIVEN
    }

    /// Notes that the connection continues in the next iteration of the loop, with a poll.
    pub(crate) fn yields(&self) {
        self.state.swap(NOTIFIED, AcqRel);
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(NOTIFIED, AcqRel) == IDLE {
            self.sender.send(Message::Wake);
        }
    }
}
