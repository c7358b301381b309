//! Values of which each thread uses a part of its own.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use crossbeam_utils::CachePadded;

/// The number of parts. More threads than that share parts.
const PARTS: usize = 16;

std::thread_local! {
    static PART: usize = {
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        STARTED.fetch_add(1, Relaxed) % PARTS
    };
}

/// A value in several parts, each in cache lines of its own. Threads that use their parts do not
/// slow each other down, as they do with one value that all of them write.
#[derive(Debug)]
pub struct Sharded<T>([CachePadded<T>; PARTS]);

impl<T> Sharded<T> {
    /// Creates the parts by their numbers.
    pub fn new(mut part: impl FnMut(usize) -> T) -> Self {
        Self(std::array::from_fn(|number| CachePadded::new(part(number))))
    }

    /// The number of parts.
    #[must_use]
    pub const fn parts(&self) -> usize {
        PARTS
    }

    /// Returns the part of this thread. Other threads may have the same one.
    pub fn local(&self) -> &T {
        &self.0[PART.with(|part| *part)]
    }

    /// Returns all parts.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|part| &**part)
    }

    /// Returns the sum of a counter in all parts.
    pub fn sum(&self, counter: impl Fn(&T) -> &AtomicU64) -> u64 {
        self.iter().fold(0, |sum, part| sum.wrapping_add(counter(part).load(Relaxed)))
    }
}

impl<T: Default> Default for Sharded<T> {
    fn default() -> Self {
        Self::new(|_number| T::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_started_one_after_the_other_have_different_parts() {
        let counter = Sharded::<AtomicU64>::default();
        // Threads of other tests may start between these.
        for _ in 0..4 * counter.parts() {
            let add = || counter.local().fetch_add(1, Relaxed);
            std::thread::scope(|scope| scope.spawn(add).join().unwrap());
        }
        assert_eq!(counter.sum(|part| part), 4 * counter.parts() as u64);
        assert!(counter.iter().filter(|part| part.load(Relaxed) > 0).count() > 1);
    }
}
