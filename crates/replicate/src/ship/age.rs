//! The kept states' age.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The clock by which states become too old. It is never ahead of the monotonic clock since its
/// creation, so that a step of the wall clock removes nothing early.
#[derive(Debug)]
pub(super) struct HistoryAge {
    start_ms: u64,
    start: Instant,
}

impl HistoryAge {
    pub(super) fn new() -> Self {
        Self { start_ms: now_ms(), start: Instant::now() }
    }

    /// Returns the time before which states are too old.
    pub(super) fn oldest_ms(&self, keep: Duration) -> u64 {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let now = now_ms().min(self.start_ms.saturating_add(ms(self.start.elapsed())));
        now.saturating_sub(ms(keep))
    }
}

/// Returns the wall clock's time, in milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
