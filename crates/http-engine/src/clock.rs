//! Detects the begin of a second, for dates that are written once a second.

use std::time::{Instant, SystemTime};

/// The last second for which dates were written.
#[derive(Debug, Default)]
pub(crate) struct SecondClock {
    /// The iteration of the event loop in which the time was read.
    iteration: Option<Instant>,
    second: u64,
}

impl SecondClock {
    /// Returns the time if another second has begun. Reads the clock once per iteration of the event
    /// loop, which `now` identifies.
    pub(crate) fn update(&mut self, now: Instant) -> Option<SystemTime> {
        if self.iteration == Some(now) {
            return None;
        }
        self.iteration = Some(now);
        let at = SystemTime::now();
        let second = at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        if second == self.second {
            return None;
        }
        self.second = second;
        Some(at)
    }
}
