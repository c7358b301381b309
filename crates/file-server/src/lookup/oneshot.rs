//! Passes one value from a disk thread to the future of a request.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

/// The sending side.
#[derive(Debug)]
pub(crate) struct Sender<T>(Arc<Mutex<Slot<T>>>);

/// The receiving side: a future, which fails if the sender is dropped without a value.
#[derive(Debug)]
pub(crate) struct Receiver<T>(Arc<Mutex<Slot<T>>>);

/// The error of a receiver whose sender was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SenderDropped;

#[derive(Debug)]
struct Slot<T> {
    value: Option<T>,
    waker: Option<Waker>,
    is_sender_dropped: bool,
}

pub(crate) fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let slot = Slot { value: None, waker: None, is_sender_dropped: false };
    let slot = Arc::new(Mutex::new(slot));
    (Sender(Arc::clone(&slot)), Receiver(slot))
}

impl<T> Sender<T> {
    /// Sends the value, and wakes the receiver if it waits.
    pub(crate) fn send(self, value: T) {
        self.0.lock().value = Some(value);
        // Dropping the sender wakes the receiver.
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut slot = self.0.lock();
        slot.is_sender_dropped = true;
        let waker = slot.waker.take();
        drop(slot);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Future for Receiver<T> {
    type Output = Result<T, SenderDropped>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut slot = self.0.lock();
        match slot.value.take() {
            Some(value) => Poll::Ready(Ok(value)),
            None if slot.is_sender_dropped => Poll::Ready(Err(SenderDropped)),
            None => {
                slot.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Wakes(AtomicU32);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    #[test]
    fn receiver_is_woken_once_by_a_value_or_by_the_drop_of_the_sender() {
        for value in [Some(7), None] {
            let wakes = Arc::new(Wakes::default());
            let waker = Waker::from(Arc::clone(&wakes));
            let mut context = Context::from_waker(&waker);
            let (sender, mut receiver) = channel();
            assert!(Pin::new(&mut receiver).poll(&mut context).is_pending());
            match value {
                Some(value) => sender.send(value),
                None => drop(sender),
            }
            assert_eq!(wakes.0.load(SeqCst), 1);
            let received = Pin::new(&mut receiver).poll(&mut context);
            assert_eq!(received, Poll::Ready(value.ok_or(SenderDropped)));
        }
    }

    #[test]
    fn value_that_is_sent_first_wakes_no_receiver() {
        let (sender, mut receiver) = channel();
        sender.send(7);
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(Pin::new(&mut receiver).poll(&mut context), Poll::Ready(Ok(7)));
    }
}
