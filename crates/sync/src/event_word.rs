//! Blocks threads until a word changes, and wakes all of them with one call.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::futex;

/// A number on which threads wait in groups, called lanes.
#[derive(Debug, Default)]
pub struct EventWord(AtomicU32);

impl EventWord {
    /// Returns the number.
    #[inline]
    pub fn get(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Changes the number, so that threads that are about to wait for the old one do not block.
    #[inline]
    pub fn advance(&self) {
        self.0.fetch_add(1, Ordering::Release);
    }

    /// Blocks while the number is `seen`, until `lane` is woken. May return earlier.
    #[inline]
    pub fn wait(&self, seen: u32, lane: u32) {
        // Fails if the number has changed or a signal has arrived. The caller checks its condition
        // again in each case.
        futex::wait_bitset(&self.0, futex::Flags::PRIVATE, seen, None, bit(lane)).ok();
    }

    /// Wakes one thread that waits in `lane`.
    #[inline]
    pub fn wake_one(&self, lane: u32) {
        self.wake(lane, 1);
    }

    /// Wakes all threads that wait in `lane`.
    #[inline]
    pub fn wake_all(&self, lane: u32) {
        self.wake(lane, ALL);
    }

    fn wake(&self, lane: u32, count: u32) {
        // Waking fails only for arguments that are not used here.
        futex::wake_bitset(&self.0, futex::Flags::PRIVATE, count, bit(lane)).ok();
    }
}

/// The number that wakes all threads: the kernel reads it as a signed one.
const ALL: u32 = i32::MAX.unsigned_abs();

/// Returns the bit by which the kernel selects the threads of a lane.
fn bit(lane: u32) -> NonZeroU32 {
    NonZeroU32::new(1 << lane).unwrap_or(NonZeroU32::MIN)
}
