//! Gives the cache's memory back when the system needs it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use haul_disk::KernelFiles;
use tokio::task::spawn_blocking;

use crate::hot::HotObjects;
use crate::served::ServedStore;

/// How often the system's available memory is read.
const INTERVAL: Duration = Duration::from_millis(250);

/// The minimum capacity of the cache, in bytes.
const BYTES_MIN: u64 = 8 << 20;

/// While less than `free_bytes_min` bytes of memory are available to this process, shrinks the
/// cache and returns freed memory to the system; lets the cache grow again afterwards; and drops
/// objects in removed volumes, whose space is then freed. Never returns.
pub(crate) async fn keep(
    hot: Arc<HotObjects>,
    store: Arc<ServedStore>,
    free_bytes_min: u64,
) -> Infallible {
    let mut removals = store.load().locked_removals();
    loop {
        tokio::time::sleep(INTERVAL).await;
        let (hot, store) = (Arc::clone(&hot), store.get());
        let after = store.locked_removals();
        let has_removed = std::mem::replace(&mut removals, after) != after;
        let kept = spawn_blocking(move || {
            if has_removed {
                hot.drop_removed();
            }
            let available = KernelFiles::default().machine().available_bytes();
            if let Some(available) = available.filter(|_| free_bytes_min > 0) {
                hot.adapt(available, free_bytes_min);
                if available < free_bytes_min {
                    haul_disk::release_free_memory();
                }
            }
        });
        // The thread that panicked has reported it.
        kept.await.unwrap_or_default();
    }
}

impl HotObjects {
    /// Drops the objects that occupy space in removed volumes.
    fn drop_removed(&self) {
        if let Some(cache) = &self.cache {
            cache.retain(|_path, object| !object.content.is_removed());
        }
    }

    /// Gives the cache the memory that is available beyond `free_bytes_min`, up to its maximum.
    fn adapt(&self, available: u64, free_bytes_min: u64) {
        let Some(cache) = &self.cache else { return };
        let allowed = (cache.weight() + available).saturating_sub(free_bytes_min);
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
            hot.adapt(available * MIB, 100 * MIB);
            assert_eq!(capacity(), expected, "{available}");
        }
        HotObjects::new(0, false).adapt(0, 1);
    }
}
