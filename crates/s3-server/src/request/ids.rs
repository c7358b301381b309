//! The identifiers of requests, which responses and logs contain.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Generates unique identifiers of requests.
pub(crate) struct RequestIds(AtomicU64);

impl RequestIds {
    /// The identifiers count up from the time of the start, so that those of two runs differ.
    pub(crate) fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(AtomicU64::new(u64::try_from(since.as_nanos()).unwrap_or(0)))
    }

    pub(crate) fn next(&self) -> [u8; 16] {
        let id = self.0.fetch_add(1, Ordering::Relaxed);
        std::array::from_fn(|at| b"0123456789ABCDEF"[(id >> (60 - 4 * at) & 15) as usize])
    }
}
