//! Shrinks the cache when the system, bodies or pinned files need its memory.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use haul_disk::KernelFiles;
use tokio::task::spawn_blocking;

use crate::config::Limits;
use crate::hot::room::Room;
use crate::service::Haul;

/// The interval at which the system's available memory is read.
const INTERVAL: Duration = Duration::from_millis(250);

/// The shared memory, divided by this number, stays free for bodies that arrive before the cache
/// shrinks.
const SPARE_PART: u64 = 16;
const SPARE_BYTES_MIN: u64 = 1 << 20;

/// Adapts the cache's capacity: to the shared memory that bodies and pinned files do not use, while
/// enough memory is available to this process. If less is available than the limits leave to the
/// system, also returns freed memory to the system. Drops objects in removed volumes, whose space
/// is then freed. Never returns.
pub(super) async fn adapt_cache(server: Haul) -> Infallible {
    let mut removals = server.store().locked_removals();
    loop {
        let Limits { shared_memory_bytes: shared_bytes, memory_free_bytes_min, .. } =
            *server.limits();
        let spare_bytes = (shared_bytes / SPARE_PART).max(SPARE_BYTES_MIN);
        let expected_bytes = match shared_bytes {
            0 => u64::MAX,
            _ => server.memory.reserved_bytes() + spare_bytes / 2,
        };
        let many_bodies = server.memory.wait_until_beyond(expected_bytes);
        drop(tokio::time::timeout(INTERVAL, many_bodies).await);
        let after = server.store().locked_removals();
        let has_removed = std::mem::replace(&mut removals, after) != after;
        let hot = Arc::clone(&server.hot);
        let used = server.memory.reserved_bytes() + server.store().pinned_bytes();
        let kept = spawn_blocking(move || {
            if has_removed {
                hot.drop_removed();
            }
            let mut room = Room { shared: None, available: None };
            if shared_bytes > 0 {
                room.shared = Some(shared_bytes.saturating_sub(used + spare_bytes));
            }
            if memory_free_bytes_min > 0 {
                let available = KernelFiles::default().machine().available_bytes();
                room.available = available.map(|bytes| (bytes, memory_free_bytes_min));
            }
            hot.adapt(room);
            if room.available.is_some_and(|(available, least)| available < least) {
                haul_disk::release_free_memory();
            }
        });
        // The thread that panicked has reported it.
        kept.await.unwrap_or_default();
    }
}
