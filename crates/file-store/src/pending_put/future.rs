//! The future of a started put, and the resolver that completes it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use haul_sync::Mutex;

use crate::error::{Error, Result};
use crate::object::StoredObject;

/// A put that was started by [`crate::Store::start_put`].
///
/// Resolves when the object is durable and visible. The put does not depend on the future: it is
/// completed if the future is never polled, and if the future is dropped.
///
/// The store calls the waker on the completing thread, without holding a lock. The waker must not
/// wait for the store. If it panics, other wakers are still called.
///
/// # Errors
/// [`Error::Log`] if the write or the sync failed. Then only reopening the store determines whether
/// the object was stored.
#[derive(Debug)]
#[must_use = "the object is durable only when the future has resolved"]
pub struct PendingPut {
    state: Arc<Mutex<State>>,
}

/// The resolver of a [`PendingPut`]. Dropping it resolves the future with an error.
#[derive(Debug)]
pub(crate) struct Resolver {
    state: Option<Arc<Mutex<State>>>,
}

/// A waker. It is called, without a lock, when this value is dropped.
#[derive(Debug)]
pub(crate) struct Wake(Option<Waker>);

#[derive(Debug)]
enum State {
    Pending(Option<Waker>),
    Resolved(Result<StoredObject>),
    /// The future has returned its result or was dropped.
    Finished,
}

pub(crate) fn pending_put() -> (Resolver, PendingPut) {
    let state = Arc::new(Mutex::new(State::Pending(None)));
    (Resolver { state: Some(Arc::clone(&state)) }, PendingPut { state })
}

/// Stays pending when it is polled again after it has resolved.
impl Future for PendingPut {
    type Output = Result<StoredObject>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // Cloning and dropping a waker run code of the caller, which must not run under the lock.
        let waker = context.waker().clone();
        let mut state = self.state.lock();
        match std::mem::replace(&mut *state, State::Finished) {
            State::Resolved(result) => Poll::Ready(result),
            State::Finished => Poll::Pending,
            State::Pending(earlier) => {
                *state = State::Pending(Some(waker));
                drop(state);
                drop(earlier);
                Poll::Pending
            }
        }
    }
}

impl Drop for PendingPut {
    fn drop(&mut self) {
        let state = std::mem::replace(&mut *self.state.lock(), State::Finished);
        drop(state);
    }
}

impl Resolver {
    /// Sets the result of the future. Dropping the returned value calls the waker.
    pub(crate) fn resolve(mut self, result: Result<StoredObject>) -> Wake {
        Wake(self.state.take().and_then(|state| set(&state, result)))
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        let Some(state) = self.state.take() else { return };
        let what = "the thread that completes puts panicked";
        drop(Wake(set(&state, Err(Error::Stopped { what }))));
    }
}

/// Sets the result if the future still exists, and returns its waker.
fn set(state: &Mutex<State>, result: Result<StoredObject>) -> Option<Waker> {
    let mut state = state.lock();
    match std::mem::replace(&mut *state, State::Finished) {
        State::Pending(waker) => {
            *state = State::Resolved(result);
            waker
        }
        State::Resolved(_) | State::Finished => None,
    }
}

impl Drop for Wake {
    fn drop(&mut self) {
        let Some(waker) = self.0.take() else { return };
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
            // The payload is leaked, because dropping it could panic again.
            std::mem::forget(payload);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Default)]
    struct Counter {
        wakes: AtomicUsize,
        panics: bool,
    }

    impl std::task::Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.wakes.fetch_add(1, Ordering::Relaxed);
            if self.panics {
                std::panic::resume_unwind(Box::new("a waker panics"));
            }
        }
    }

    fn poll(put: Pin<&mut PendingPut>, counter: &Arc<Counter>) -> Poll<Result<StoredObject>> {
        put.poll(&mut Context::from_waker(&Arc::clone(counter).into()))
    }

    #[test]
    fn last_waker_is_called_once_and_result_is_returned_once() {
        let (first, last) = (Arc::new(Counter::default()), Arc::new(Counter::default()));
        let (resolver, put) = pending_put();
        let mut put = pin!(put);
        assert!(poll(put.as_mut(), &first).is_pending());
        assert!(poll(put.as_mut(), &last).is_pending());
        let wake = resolver.resolve(Err(Error::PreconditionFailed));
        assert_eq!(last.wakes.load(Ordering::Relaxed), 0);
        drop(wake);
        assert_eq!(last.wakes.load(Ordering::Relaxed), 1);
        assert_eq!(first.wakes.load(Ordering::Relaxed), 0);
        let result = poll(put.as_mut(), &last);
        assert!(matches!(result, Poll::Ready(Err(Error::PreconditionFailed))));
        assert!(poll(put.as_mut(), &last).is_pending());
        assert_eq!((Arc::strong_count(&first), Arc::strong_count(&last)), (1, 1));
    }

    #[test]
    fn dropped_resolver_is_an_error_and_waker_panic_is_contained() {
        let counter = Arc::new(Counter { panics: true, ..Counter::default() });
        let (resolver, put) = pending_put();
        let mut put = pin!(put);
        assert!(poll(put.as_mut(), &counter).is_pending());
        drop(resolver);
        assert_eq!(counter.wakes.load(Ordering::Relaxed), 1);
        assert!(matches!(poll(put.as_mut(), &counter), Poll::Ready(Err(Error::Stopped { .. }))));
    }

    #[test]
    fn dropped_future_wakes_no_task() {
        let counter = Arc::new(Counter::default());
        let (resolver, mut put) = pending_put();
        assert!(poll(Pin::new(&mut put), &counter).is_pending());
        drop(put);
        assert_eq!(Arc::strong_count(&counter), 1, "its waker is dropped with it");
        drop(resolver.resolve(Err(Error::PreconditionFailed)));
        assert_eq!(counter.wakes.load(Ordering::Relaxed), 0);
    }
}
