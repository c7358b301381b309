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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};
    use std::thread;

    use super::*;

    #[test]
    fn wait_for_an_old_number_returns_at_once() {
        let word = EventWord::default();
        let seen = word.get();
        word.advance();
        assert_eq!(word.get(), seen + 1);
        word.wait(seen, 0);
    }

    #[test]
    fn threads_of_other_lanes_are_not_woken() {
        let word = &EventWord::default();
        // Wakes again and again, because a wake-up before the wait has no effect.
        let wake_until = |woken: &Receiver<()>, wake: &dyn Fn()| {
            while woken.try_recv().is_err() {
                wake();
                thread::yield_now();
            }
        };
        thread::scope(|scope| {
            let waiting = |lane: u32| {
                let (sender, woken) = channel();
                scope.spawn(move || {
                    word.wait(0, lane);
                    sender.send(()).unwrap();
                });
                woken
            };
            let (first, last) = (waiting(0), waiting(31));
            wake_until(&first, &|| word.wake_one(0));
            assert!(last.try_recv().is_err(), "it waits in another lane");
            wake_until(&last, &|| word.wake_all(31));
        });
    }
}
