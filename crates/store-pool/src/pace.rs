//! The rate at which keys are moved.

use std::time::{Duration, Instant};

use haul_sync::Mutex;

/// The bytes that moving a key costs beside its content: its needle in one log, and its deletion in
/// the other.
const KEY_BYTES: u64 = 256;

/// The rate of the moves of a pool, which all threads share.
#[derive(Debug)]
pub(crate) struct Pace {
    /// The rate in bytes per second; 0 for no limit.
    rate: u64,
    /// The time up to which the moves have used the rate.
    used: Mutex<Option<Instant>>,
}

impl Pace {
    pub(crate) fn new(bytes_per_second: u64) -> Self {
        Self { rate: bytes_per_second, used: Mutex::default() }
    }

    /// Records that a key was moved at `now`, with `bytes` of content. Returns the time to wait
    /// before the next one.
    pub(crate) fn moved(&self, bytes: u64, now: Instant) -> Duration {
        if self.rate == 0 {
            return Duration::ZERO;
        }
        let mut used = self.used.lock();
        let nanoseconds = u128::from(bytes + KEY_BYTES) * 1_000_000_000 / u128::from(self.rate);
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
        let (pace, now) = (Pace::new(1 << 20), Instant::now());
        assert_eq!(Pace::new(0).moved(1 << 30, now), Duration::ZERO);
        let key = (1 << 19) - KEY_BYTES;
        let after = |milliseconds| now + Duration::from_millis(milliseconds);
        for (at, wait) in [(0, 500), (0, 1000), (1000, 500), (4000, 500)] {
            assert_eq!(pace.moved(key, after(at)), Duration::from_millis(wait), "{at}");
        }
    }
}
