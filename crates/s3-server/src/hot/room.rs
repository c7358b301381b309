//! Adapts the cache's capacity to the memory that other users leave.

use crate::hot::HotObjects;

/// The minimum capacity of the cache, in bytes.
const BYTES_MIN: u64 = 8 << 20;

/// The memory that the cache may take, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// The part of the memory shared with other users that they do not use; `None` if the cache
    /// shares no memory.
    pub(crate) shared: Option<u64>,
    /// The memory available to this process, and the memory that it leaves to the system; `None` if
    /// this is unknown or unlimited.
    pub(crate) available: Option<(u64, u64)>,
}

impl HotObjects {
    /// Drops the objects that occupy space in removed volumes.
    pub(crate) fn drop_removed(&self) {
        if let Some(cache) = &self.cache {
            cache.retain(|_path, object| !object.content.is_removed());
        }
    }

    /// Sets the cache's capacity to the available memory, up to its maximum.
    pub(crate) fn adapt(&self, room: Room) {
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
