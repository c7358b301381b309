//! Versions: numbers that order writes and contain their time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The number of bits that count versions within a millisecond.
pub(crate) const COUNTER_BITS: u32 = 20;

/// A write's unique time: milliseconds since 1970 and a counter. Later writes have greater
/// versions, even if the system clock is set back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Version(pub(crate) u64);

impl Version {
    /// Returns the time of the write in milliseconds.
    pub(crate) fn time(self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.millis())
    }

    /// Returns the time of the write in milliseconds since 1970.
    pub(crate) fn millis(self) -> u64 {
        self.0 >> COUNTER_BITS
    }

    /// Returns the smallest version in a millisecond.
    pub(crate) fn from_millis(millis: u64) -> Self {
        Self(millis << COUNTER_BITS)
    }
}

/// The clock for write times and object expiration.
#[derive(Debug, Clone, Default)]
pub enum TimeSource {
    /// The system clock.
    #[default]
    System,
    /// Milliseconds since 1970, set by the caller: for tests.
    Manual(Arc<AtomicU64>),
}

impl TimeSource {
    fn now_ms(&self) -> u64 {
        match self {
            Self::System => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                u64::try_from(since.as_millis()).unwrap_or(0)
            }
            Self::Manual(millis) => millis.load(Ordering::Relaxed),
        }
    }
}

/// The source of versions.
#[derive(Debug)]
pub(crate) struct Clock {
    last: AtomicU64,
    source: TimeSource,
}

impl Clock {
    /// Creates a clock whose versions are all greater than `last`.
    pub(crate) fn after(last: Version, source: TimeSource) -> Self {
        Self { last: AtomicU64::new(last.0), source }
    }

    /// Returns the time in milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> u64 {
        self.source.now_ms()
    }

    /// Returns the time, rounded down to milliseconds.
    pub(crate) fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.now_ms())
    }

    pub(crate) fn next(&self) -> Version {
        let now = self.now_ms() << COUNTER_BITS;
        let next = |last: u64| Some(now.max(last + 1));
        let last = self
            .last
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
            .expect("the counter of versions does not overflow");
        debug_assert!(last < u64::MAX);
        Version(now.max(last + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_increase_and_contain_the_time() {
        let clock = Clock::after(Version(0), TimeSource::System);
        let before = SystemTime::now() - Duration::from_millis(1);
        let (first, second) = (clock.next(), clock.next());
        assert!(second > first);
        assert!(first.time() > before && second.time() <= SystemTime::now());
        let ahead = Version(u64::MAX >> 1);
        let set_back = Clock::after(ahead, TimeSource::System);
        assert_eq!(set_back.next(), Version(ahead.0 + 1), "the clock was set back");
        let manual = Clock::after(Version(0), TimeSource::Manual(Arc::new(AtomicU64::new(7))));
        assert_eq!((manual.next().millis(), manual.now_ms()), (7, 7));
    }
}
