//! The rate at which keys are moved.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use haul_sync::Mutex;

/// The bytes that moving a key costs beside its content: its needle in one log, and its deletion in
/// the other.
const KEY_BYTES: u64 = 256;

/// The rate of the moves of a pool, which all threads share.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// The rate in bytes per second; 0 for no limit.
    rate: AtomicU64,
    /// The time up to which the moves have used the rate.
    used: Mutex<Option<Instant>>,
}

impl Pace {
    pub(crate) fn set_rate(&self, bytes_per_second: u64) {
        self.rate.store(bytes_per_second, Relaxed);
    }

    /// Records that a key was moved at `now`, with `bytes` of content. Returns the time to wait
    /// before the next one.
    pub(crate) fn moved(&self, bytes: u64, now: Instant) -> Duration {
        let rate = self.rate.load(Relaxed);
        if rate == 0 {
            return Duration::ZERO;
        }
        let mut used = self.used.lock();
        let nanoseconds = u128::from(bytes + KEY_BYTES) * 1_000_000_000 / u128::from(rate);
        let takes = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX));
        let until = used.map_or(now, |used| used.max(now)) + takes;
        *used = Some(until);
        until - now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_of_all_threads_share_the_rate() {
        let (pace, now) = (Pace::default(), Instant::now());
        assert_eq!(pace.moved(1 << 30, now), Duration::ZERO);
        pace.set_rate(1 << 20);
        let key = (1 << 19) - KEY_BYTES;
        let after = |milliseconds| now + Duration::from_millis(milliseconds);
        for (at, wait) in [(0, 500), (0, 1000), (1000, 500), (4000, 500)] {
            assert_eq!(pace.moved(key, after(at)), Duration::from_millis(wait), "{at}");
        }
    }
}
