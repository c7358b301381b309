//! Gives the cache's memory back when the system, bodies or pinned files need it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use haul_disk::KernelFiles;
use tokio::task::spawn_blocking;

use crate::config::Limits;
use crate::hot::HotObjects;
use crate::service::Haul;

/// How often the system's available memory is read.
const INTERVAL: Duration = Duration::from_millis(250);

/// The minimum capacity of the cache, in bytes.
const BYTES_MIN: u64 = 8 << 20;

/// The part of the shared memory that stays free, for bodies that arrive before the cache shrinks.
const SPARE_PART: u64 = 16;
const SPARE_BYTES_MIN: u64 = 1 << 20;

/// Lets the cache take the memory that it may have: what bodies and pinned files leave of the
/// memory that they share, while as much is available to this process as the limits leave to the
/// system. Below that, also returns freed memory to the system. Drops objects in removed volumes,
/// whose space is then freed. Never returns.
pub(crate) async fn keep(server: Haul) -> Infallible {
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

/// The memory that the cache may take, in bytes.
#[derive(Debug, Clone, Copy)]
struct Room {
    /// What others leave of the memory that they share with the cache; `None` if they share none.
    shared: Option<u64>,
    /// The memory that is available to this process, and that it leaves to the system; `None` if
    /// that is unknown, or without a limit.
    available: Option<(u64, u64)>,
}

impl HotObjects {
    /// Drops the objects that occupy space in removed volumes.
    fn drop_removed(&self) {
        if let Some(cache) = &self.cache {
            cache.retain(|_path, object| !object.content.is_removed());
        }
    }

    /// Gives the cache the memory for which there is room, up to its maximum.
    fn adapt(&self, room: Room) {
        let Some(cache) = &self.cache else { return };
        let beyond =
            |(available, least): (u64, u64)| (cache.weight() + available).saturating_sub(least);
        let available = room.available.map_or(u64::MAX, beyond);
        let allowed = available.min(room.shared.unwrap_or(u64::MAX));
        // A cache without capacity could not grow again.
        let capacity = allowed.clamp(BYTES_MIN.min(self.bytes_max), self.bytes_max);
        let before = cache.capacity();
        // Small changes are not worth the locks.
        if capacity < before || capacity == self.bytes_max || capacity - before > before / 16 {
            cache.set_capacity(capacity);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn capacity_follows_the_available_memory() {
        let hot = HotObjects::new(1024 * MIB, false);
        let capacity = || hot.cache.as_ref().unwrap().capacity() / MIB;
        for (available, expected) in
            [(4096, 1024), (600, 500), (610, 500), (700, 600), (50, 8), (0, 8), (4096, 1024)]
        {
            hot.adapt(Room { shared: None, available: Some((available * MIB, 100 * MIB)) });
            assert_eq!(capacity(), expected, "{available}");
        }
        HotObjects::new(0, false).adapt(Room { shared: Some(0), available: Some((0, 1)) });
    }

    #[test]
    fn capacity_is_what_bodies_and_pinned_files_leave() {
        let hot = HotObjects::new(1024 * MIB, false);
        let capacity = || hot.cache.as_ref().unwrap().capacity() / MIB;
        let plenty = Some((4096 * MIB, 100 * MIB));
        for (shared, available, expected) in [
            (960, plenty, 960),
            (500, plenty, 500),
            (500, Some((300 * MIB, 100 * MIB)), 200),
            (500, None, 500),
            (0, None, 8),
            (2000, None, 1024),
        ] {
            hot.adapt(Room { shared: Some(shared * MIB), available });
            assert_eq!(capacity(), expected, "{shared}");
        }
    }
}
