//! The identifiers of requests, which responses and logs contain.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use haul_sync::Sharded;

/// Generates unique identifiers of requests.
pub(crate) struct RequestIds(Sharded<AtomicU64>);

impl RequestIds {
    /// The identifiers count up from the time of the start, so that those of two runs differ. Each
    /// part counts in steps of the number of parts.
    pub(crate) fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let first = u64::try_from(since.as_nanos()).unwrap_or(0);
        Self(Sharded::new(|part| AtomicU64::new(first + part as u64)))
    }

    pub(crate) fn next(&self) -> [u8; 16] {
        let id = self.0.local().fetch_add(self.0.parts() as u64, Ordering::Relaxed);
        std::array::from_fn(|at| b"0123456789ABCDEF"[(id >> (60 - 4 * at) & 15) as usize])
    }
}
