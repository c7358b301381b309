//! Messages of blocked threads, each pending until another thread has hashed it.

#![expect(unsafe_code, reason = "one thread reads the message that another thread borrowed")]

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use std::thread::{self, Thread};

use parking_lot::Mutex;

use crate::Digest;

/// The end of the wait for another thread.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Outcome {
    /// The message was hashed.
    Digest(Digest),
    /// The message was not hashed, and its owner becomes the leader.
    Lead,
    /// The message was not hashed.
    Unfinished,
}

/// The part of a pending message that its owner and its holder share.
#[derive(Debug)]
struct Slot {
    outcome: Mutex<Option<Outcome>>,
    owner: Thread,
}

/// The owner's side of a pending message, which keeps the message borrowed.
///
/// Dropping it waits until the message is no longer pending.
#[derive(Debug)]
pub(crate) struct Ticket<'a> {
    slot: Arc<Slot>,
    message: PhantomData<&'a [u8]>,
}

/// A message that another thread than its owner holds. Dropping it wakes the owner.
#[derive(Debug)]
pub(crate) struct Pending {
    bytes: NonNull<[u8]>,
    slot: Arc<Slot>,
}

// SAFETY: `bytes` is a shared reference to bytes (see `as_ref`), which may be sent to and used by
// any thread; the other field is `Send`.
unsafe impl Send for Pending {}

/// Makes a message pending. The caller passes the second value to another thread and waits with the
/// first, which it must not leak.
pub(crate) fn submit(message: &[u8]) -> (Ticket<'_>, Pending) {
    let slot = Arc::new(Slot { outcome: Mutex::new(None), owner: thread::current() });
    let pending = Pending { bytes: NonNull::from(message), slot: Arc::clone(&slot) };
    (Ticket { slot, message: PhantomData }, pending)
}

impl Ticket<'_> {
    /// Waits until the message is no longer pending.
    pub(crate) fn wait(&self) -> Outcome {
        loop {
            if let Some(outcome) = *self.slot.outcome.lock() {
                return outcome;
            }
            thread::park();
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.wait();
    }
}

impl Pending {
    /// Sets the outcome and wakes the owner.
    pub(crate) fn finish(self, outcome: Outcome) {
        *self.slot.outcome.lock() = Some(outcome);
    }
}

impl AsRef<[u8]> for Pending {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the message is borrowed for the lifetime of `Ticket`. A `Ticket` is not dropped and
        // its owner does not continue before the slot has an outcome, and an outcome is set only by
        // `finish` and `drop`, after which nothing can call this function.
        unsafe { self.bytes.as_ref() }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.slot.outcome.lock().get_or_insert(Outcome::Unfinished);
        self.slot.owner.unpark();
    }
}
