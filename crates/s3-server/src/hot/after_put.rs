//! Decides whether an object is cached when it is stored.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The number of objects that are cached before their reads are counted.
const OBJECTS_MIN: u32 = 1024;

/// The number of cached objects at which the counts are halved, so that recent objects have more
/// weight.
const OBJECTS_MAX: u32 = 16 << 10;

/// Objects are cached while at least one of this many is read.
const PER_READ_MAX: u32 = 8;

/// One of this many objects is cached even if few are read, to detect when that changes.
const SAMPLE: u32 = 64;

/// Learns whether objects are read after they were stored: a web application reads its objects, a
/// bulk import does not.
#[derive(Debug, Default)]
pub(crate) struct AfterPut {
    stored: AtomicU32,
    cached: AtomicU32,
    read: AtomicU32,
}

impl AfterPut {
    /// Returns `true` if the object that is being stored should be cached.
    pub(crate) fn admits(&self) -> bool {
        let (cached, read) = (self.cached.load(Relaxed), self.read.load(Relaxed));
        let is_sample = self.stored.fetch_add(1, Relaxed).is_multiple_of(SAMPLE);
        let admits = cached < OBJECTS_MIN || read >= cached / PER_READ_MAX || is_sample;
        if admits && self.cached.fetch_add(1, Relaxed) + 1 >= OBJECTS_MAX {
            self.cached.store(OBJECTS_MAX / 2, Relaxed);
            self.read.store(read / 2, Relaxed);
        }
        admits
    }

    /// Records the first read of an object that was cached when it was stored.
    pub(crate) fn read(&self) {
        self.read.fetch_add(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_cached_while_they_are_read() {
        let after_put = AfterPut::default();
        let mut cached = 0;
        for _ in 0..100_000 {
            cached += u32::from(after_put.admits());
        }
        assert!((2_500..3_000).contains(&cached), "a bulk import: {cached}");
        // From now on, a quarter of the cached objects is read.
        for number in 0..100_000 {
            if after_put.admits() && number % 4 == 0 {
                after_put.read();
            }
        }
        assert!((0..1000).all(|_| after_put.admits()));
        // From now on, no object is read.
        let cached = (0..100_000).filter(|_| after_put.admits()).count();
        assert!(cached < 40_000, "{cached}");
        assert!((0..6400).filter(|_| after_put.admits()).count() <= 100);
    }
}
