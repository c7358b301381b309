//! Versions: numbers that order writes and contain their time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The number of bits that count versions within a millisecond.
pub(crate) const COUNTER_BITS: u32 = 20;

/// A write's time: milliseconds since 1970 and a counter. Later writes of a key in a bucket with
/// versions have greater versions. So do later uploads, even if the system clock is set back.
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

/// If the newest version is further ahead of the clock than this, in milliseconds, an earlier clock
/// was wrong. A smaller difference is a step back, which the clock soon makes up.
const LEAD_MAX_MS: u64 = 60_000;

/// The source of versions.
#[derive(Debug)]
pub(crate) struct Clock {
    last: AtomicU64,
    /// The last version for the present time, while other versions lie in the future.
    last_present: AtomicU64,
    source: TimeSource,
}

impl Clock {
    /// Creates a clock whose versions are all greater than `last`.
    pub(crate) fn after(last: Version, source: TimeSource) -> Self {
        Self { last: AtomicU64::new(last.0), last_present: AtomicU64::new(0), source }
    }

    /// Returns the time in milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> u64 {
        self.source.now_ms()
    }

    /// Returns the time, rounded down to milliseconds.
    pub(crate) fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.now_ms())
    }

    /// Makes later versions greater than `version`, which another store has assigned.
    pub(crate) fn advance_past(&self, version: Version) {
        self.last.fetch_max(version.0, Ordering::Relaxed);
    }

    /// Returns a version greater than all before it.
    pub(crate) fn next(&self) -> Version {
        next(&self.last, self.now_ms())
    }

    /// Returns a version for a new object of a key: greater than `newest`, the key's newest
    /// version, and normally greater than all other versions. While other versions lie in the
    /// future, only `newest` is a lower bound, so that new objects get the present time if
    /// possible.
    pub(crate) fn next_for_key(&self, newest: Option<Version>) -> Version {
        if !self.has_future_versions() {
            return self.next();
        }
        let present = next(&self.last_present, self.now_ms());
        newest.map_or(present, |newest| present.max(Version(newest.0 + 1)))
    }

    /// Returns `true` if the newest version is more than [`LEAD_MAX_MS`] in the future.
    pub(crate) fn has_future_versions(&self) -> bool {
        let last = Version(self.last.load(Ordering::Relaxed));
        last.millis().checked_sub(self.now_ms()).is_some_and(|lead| lead > LEAD_MAX_MS)
    }
}

/// Sets `last` to a version with this time, or to its successor if that is greater, and returns it.
fn next(last: &AtomicU64, now_ms: u64) -> Version {
    let now = now_ms << COUNTER_BITS;
    let after = |last: u64| Some(now.max(last + 1));
    let last = last
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, after)
        .expect("the counter of versions does not overflow");
    debug_assert!(last < u64::MAX);
    Version(now.max(last + 1))
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

    #[test]
    fn clock_that_was_ahead_gives_later_objects_the_present_time() {
        let millis = Arc::new(AtomicU64::new(100_000));
        let clock = |last| Clock::after(last, TimeSource::Manual(Arc::clone(&millis)));
        let soon = clock(Version::from_millis(100_000 + LEAD_MAX_MS));
        assert!(
            soon.next_for_key(None) > Version::from_millis(100_000 + LEAD_MAX_MS),
            "a step back"
        );
        let far = Version::from_millis(900_000_000);
        let clock = clock(far);
        let (first, second) = (clock.next_for_key(None), clock.next_for_key(None));
        assert!(first < second && [first, second].iter().all(|it| it.millis() == 100_000));
        assert_eq!(clock.next_for_key(Some(far)), Version(far.0 + 1), "versions of a key increase");
        assert_eq!(clock.next(), Version(far.0 + 1), "all else is ordered in the store");
        millis.store(900_000_001, Ordering::Relaxed);
        assert_eq!(clock.next_for_key(Some(first)), Version::from_millis(900_000_001));
    }
}
