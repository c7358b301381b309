//! Messages from other threads to connections, and the wake-ups of their event loops.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering::AcqRel;

use haul_sync::AtomicBool;
use haul_sync::mpsc::Sender;

use crate::key::Key;
use crate::poller::Waker;

/// The sending side of the queue of messages from other threads.
pub(crate) struct MessageQueue<M> {
    pub(crate) sender: Sender<(Key, M)>,
    pub(crate) waker: Arc<Waker>,
    /// `true` from the first message that wakes the thread until the thread is about to wait again.
    /// In between it looks for messages, which therefore need no wake-up.
    pub(crate) is_woken: Arc<AtomicBool>,
}

impl<M> Clone for MessageQueue<M> {
    fn clone(&self) -> Self {
        Self {
            sender: self.sender.clone(),
            waker: Arc::clone(&self.waker),
            is_woken: Arc::clone(&self.is_woken),
        }
    }
}

/// A sender of messages to one connection, usable from any thread.
pub struct MessageSender<M> {
    pub(crate) key: Key,
    pub(crate) queue: MessageQueue<M>,
}

impl<M> MessageSender<M> {
    /// Queues a message; the connection is then driven with
    /// [`Event::Message`](crate::Event::Message). The message is dropped if the connection was
    /// closed.
    pub fn send(&self, message: M) {
        let is_sent = self.queue.sender.send((self.key, message)).is_ok();
        if is_sent && !self.queue.is_woken.swap(true, AcqRel) {
            wake(&self.queue.waker);
        }
    }
}

haul_sync::thread_local! {
    /// The wake-ups that this thread has postponed; `None` outside [`wake_once`].
    static POSTPONED: RefCell<Option<Vec<Arc<Waker>>>> = const { RefCell::new(None) };
}

/// Wakes an event loop, or postpones this to the end of [`wake_once`].
fn wake(waker: &Arc<Waker>) {
    let is_postponed = POSTPONED.with(|postponed| {
        postponed.borrow_mut().as_mut().map(|wakers| wakers.push(Arc::clone(waker))).is_some()
    });
    if !is_postponed {
        // If waking fails, the thread reads the message in its next iteration.
        waker.wake().ok();
    }
}

/// Calls `send`, and wakes each event loop to which it sent messages once, when it has returned.
///
/// Without this, the first of several messages wakes the event loop, which on a busy machine runs
/// before the second one is sent, and is woken again by that.
pub fn wake_once(send: &mut dyn FnMut()) {
    /// Wakes the event loops when it is dropped, also if `send` panics.
    struct Wakers;

    impl Drop for Wakers {
        fn drop(&mut self) {
            let postponed = POSTPONED.with(RefCell::take).unwrap_or_default();
            postponed.iter().for_each(wake);
        }
    }

    if POSTPONED.with(|postponed| postponed.borrow().is_some()) {
        return send();
    }
    POSTPONED.with(|postponed| postponed.replace(Some(Vec::new())));
    let _wakers = Wakers;
    send();
}
