//! Locks a log's state, and runs the caller's code only after unlocking it.
//!
//! A waker is the caller's code and may call the log, which would deadlock under the lock. Closing
//! a file or freeing a long buffer may take long. Code that changes the state therefore defers such
//! calls until the state is unlocked.

use std::ops::{Deref, DerefMut};
use std::time::Instant;

use haul_sync::{Condvar, Mutex, MutexGuard, wait_briefly};

use crate::append::state::State;
use crate::append::wakers::Deferred;

/// The state with its lock, and the condition variable on which the commit thread waits.
#[derive(Debug)]
pub(crate) struct StateLock {
    state: Mutex<State>,
    /// Notifies the commit thread that it has work or that the log is closing.
    work: Condvar,
}

/// The thread that makes a [`Locked`]'s deferred calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delivery {
    /// The thread that unlocks the state.
    Unlocker,
    /// The commit thread, which the unlocking thread notifies.
    CommitThread,
}

/// The locked state. Its fields are dropped in the order of their declaration: first the lock is
/// released, then the deferred calls are made.
#[derive(Debug)]
pub(crate) struct Locked<'a> {
    state: MutexGuard<'a, State>,
    deferred: Deferred,
    work: &'a Condvar,
    delivery: Delivery,
}

impl StateLock {
    pub(super) fn new(state: State) -> Self {
        Self { state: Mutex::new(state), work: Condvar::new() }
    }

    /// Locks the state. This thread makes the deferred calls when it unlocks the state. Such a call
    /// may take long and may wait for any log operation, so no other thread may wait for this
    /// thread.
    pub(crate) fn lock(&self) -> Locked<'_> {
        self.lock_with(Delivery::Unlocker)
    }

    /// Locks the state and leaves deferred calls to the commit thread. It is used by threads for
    /// which other threads wait: the thread that creates segments, and a thread that has paused
    /// appends.
    pub(crate) fn lock_deferring_wakers(&self) -> Locked<'_> {
        self.lock_with(Delivery::CommitThread)
    }

    fn lock_with(&self, delivery: Delivery) -> Locked<'_> {
        let deferred = Deferred::default();
        Locked { state: self.state.lock(), deferred, work: &self.work, delivery }
    }

    /// Wakes the commit thread so that it checks the state. Returns `true` if it waited.
    pub(crate) fn notify_commit_thread(&self) -> bool {
        self.work.notify_one()
    }
}

impl Locked<'_> {
    /// Runs `body` with the state unlocked. Deferred calls stay deferred.
    pub(crate) fn unlocked<T>(&mut self, body: impl FnOnce() -> T) -> T {
        MutexGuard::unlocked(&mut self.state, body)
    }

    /// Unlocks the state and waits until `event` is notified or `deadline` has passed. Makes no
    /// deferred calls, because this thread is committing and must not run the caller's code.
    pub(super) fn wait_briefly(&mut self, event: &Condvar, deadline: Instant) {
        wait_briefly(event, &mut self.state, deadline);
    }

    /// Makes the deferred calls with the state unlocked, unless they are left to the commit thread.
    /// Returns `true` if it made any, since the state may have changed meanwhile.
    pub(super) fn deliver(&mut self) -> bool {
        if !self.state.wakers.has_deferred() {
            return false;
        }
        if self.delivery == Delivery::CommitThread {
            self.work.notify_one();
            return false;
        }
        let deferred = self.state.wakers.take_deferred();
        self.unlocked(|| drop(deferred));
        true
    }

    /// Unlocks the state and waits until `event` is notified. If there are deferred calls, makes
    /// them and returns without waiting. In both cases the caller must check the state again.
    pub(crate) fn wait(&mut self, event: &Condvar) {
        if !self.deliver() {
            event.wait(&mut self.state);
        }
    }

    /// Waits like [`Locked::wait`], but at most until `deadline`. Returns `true` if the deadline
    /// has passed.
    pub(crate) fn wait_until(&mut self, event: &Condvar, deadline: Instant) -> bool {
        !self.deliver() && event.wait_until(&mut self.state, deadline).timed_out()
    }

    /// Waits on the commit thread until it is notified of work or `deadline` has passed.
    pub(super) fn wait_for_work(&mut self, deadline: Option<Instant>) {
        match deadline {
            Some(deadline) => {
                self.wait_until(self.work, deadline);
            }
            None => self.wait(self.work),
        }
    }
}

impl Deref for Locked<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        match self.delivery {
            Delivery::Unlocker => self.deferred = self.state.wakers.take_deferred(),
            Delivery::CommitThread if self.state.wakers.has_deferred() => {
                self.work.notify_one();
            }
            Delivery::CommitThread => {}
        }
    }
}
