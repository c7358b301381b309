//! The clock that event loops compare deadlines with.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The clock of an event loop.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// The monotonic clock of the system.
    #[default]
    System,
    /// A clock that a test moves, so that its time limits pass at once, and only then.
    Manual(ManualClock),
}

impl Clock {
    /// Returns the current time.
    pub fn now(&self) -> Instant {
        match self {
            Self::System => haul_sync::now(),
            Self::Manual(manual) => manual.now(),
        }
    }
}

/// A clock that stands still until it is moved. Clones are the same clock.
#[derive(Debug, Clone)]
pub struct ManualClock {
    start: Instant,
    ahead_ms: Arc<AtomicU64>,
}

impl ManualClock {
    /// Creates a clock that shows the current time.
    #[must_use]
    pub fn new() -> Self {
        Self { start: haul_sync::now(), ahead_ms: Arc::default() }
    }

    /// Moves the clock forward by whole milliseconds. An event loop with deadlines notices it within
    /// 100 ms of real time, and checks the deadlines if it has moved by 100 ms since the last check.
    pub fn advance(&self, by: Duration) {
        let by_ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.ahead_ms.fetch_add(by_ms, Relaxed);
    }

    fn now(&self) -> Instant {
        self.start + Duration::from_millis(self.ahead_ms.load(Relaxed))
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl From<&ManualClock> for Clock {
    fn from(clock: &ManualClock) -> Self {
        Self::Manual(clock.clone())
    }
}
