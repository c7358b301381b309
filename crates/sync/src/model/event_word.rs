//! A word on which threads wait in lanes.

use std::sync::PoisonError;

use shuttle::sync::{Condvar, Mutex, MutexGuard};

/// The number of lanes of an [`EventWord`].
const LANES: usize = 4;

/// A number on which threads wait in lanes. A lock makes the comparison and the beginning of a wait
/// one step, as the kernel does for a futex.
#[derive(Debug, Default)]
pub struct EventWord {
    number: Mutex<u32>,
    lanes: [Condvar; LANES],
}

impl EventWord {
    fn lock(&self) -> MutexGuard<'_, u32> {
        self.number.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number.
    pub fn get(&self) -> u32 {
        *self.lock()
    }

    /// Changes the number, so that threads that are about to wait for the old one do not block.
    pub fn advance(&self) {
        *self.lock() += 1;
    }

    /// Blocks while the number is `seen`, until `lane` is woken.
    pub fn wait(&self, seen: u32, lane: u32) {
        let number = self.lock();
        if *number == seen {
            drop(self.lanes[lane as usize].wait(number));
        }
    }

    /// Wakes one thread that waits in `lane`.
    pub fn wake_one(&self, lane: u32) {
        let _number = self.lock();
        self.lanes[lane as usize].notify_one();
    }

    /// Wakes all threads that wait in `lane`.
    pub fn wake_all(&self, lane: u32) {
        let _number = self.lock();
        self.lanes[lane as usize].notify_all();
    }
}
