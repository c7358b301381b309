//! Request identifiers, which responses and logs contain.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use haul_sync::Sharded;

/// Generates unique request identifiers: the time in nanoseconds, rounded down to a multiple of the
/// number of shards, plus the shard's index. So a later request has a greater identifier, unless
/// the clock was set back, and threads share no cache line that they write.
pub(crate) struct RequestIds(Sharded<AtomicU64>);

impl RequestIds {
    pub(crate) fn new() -> Self {
        Self(Sharded::new(|part| AtomicU64::new(part as u64)))
    }

    pub(crate) fn next(&self) -> [u8; 16] {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(since.as_nanos()).unwrap_or(0);
        let parts = self.0.parts() as u64;
        let after = |last: u64| (now - now % parts + last % parts).max(last + parts);
        let update = |last| Some(after(last));
        let (Ok(last) | Err(last)) = self.0.local().fetch_update(Relaxed, Relaxed, update);
        let id = after(last);
        std::array::from_fn(|at| b"0123456789ABCDEF"[(id >> (60 - 4 * at) & 15) as usize])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn identifiers_are_unique_and_count_up() {
        let ids = RequestIds::new();
        let some = || (0..5_000).map(|_| ids.next()).collect::<Vec<_>>();
        let before = some();
        assert!(before.is_sorted());
        let all: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..40).map(|_| scope.spawn(some)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 40 * 5_000);
        assert!(all.iter().all(|id| before.last().unwrap() < id));
    }
}
