//! Key locks: writers of the same key exclude one another, writers of different keys do not.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use haul_sync::{Condvar, Mutex};

const SHARDS: usize = 64;

#[derive(Debug)]
pub(crate) struct KeyLocks {
    shards: Arc<[Shard]>,
    hasher: RandomState,
}

#[derive(Debug, Default)]
struct Shard {
    held: Mutex<HashSet<String>>,
    released: Condvar,
}

/// A key's lock, which is released when this value is dropped, on any thread.
#[derive(Debug)]
pub(crate) struct KeyGuard {
    shards: Arc<[Shard]>,
    /// The shard's index.
    shard: usize,
    name: String,
}

impl KeyLocks {
    pub(crate) fn new() -> Self {
        let shards = (0..SHARDS).map(|_| Shard::default()).collect();
        Self { shards, hasher: RandomState::new() }
    }

    /// Returns the index of a key's shard, and the key's name in it.
    fn shard_of(&self, bucket: &str, key: &str) -> (usize, String) {
        // Bucket names contain no slash, so the text is unique for each bucket and key.
        let name = [bucket, "/", key].concat();
        let shard = usize::try_from(self.hasher.hash_one(&name) % SHARDS as u64).unwrap_or(0);
        (shard, name)
    }

    fn guard(&self, shard: usize, name: String) -> KeyGuard {
        KeyGuard { shards: Arc::clone(&self.shards), shard, name }
    }

    /// Waits for a key's lock and takes it.
    ///
    /// To prevent deadlocks, a thread that holds a key's lock and waits for another takes them in
    /// the order of their names.
    pub(crate) fn lock(&self, bucket: &str, key: &str) -> KeyGuard {
        let (shard, name) = self.shard_of(bucket, key);
        let Shard { held, released } = &self.shards[shard];
        let mut held = held.lock();
        while !held.insert(name.clone()) {
            released.wait(&mut held);
        }
        drop(held);
        self.guard(shard, name)
    }

    /// Takes a key's lock if it is free.
    pub(crate) fn try_lock(&self, bucket: &str, key: &str) -> Option<KeyGuard> {
        let (shard, name) = self.shard_of(bucket, key);
        let is_free = self.shards[shard].held.lock().insert(name.clone());
        // Creating and dropping a guard would unlock a key that another thread holds.
        is_free.then(|| self.guard(shard, name))
    }
}

impl Drop for KeyGuard {
    fn drop(&mut self) {
        let Shard { held, released } = &self.shards[self.shard];
        let was_held = held.lock().remove(&self.name);
        debug_assert!(was_held, "{} was not locked", self.name);
        released.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_locked_by_one_guard_at_a_time() {
        let locks = KeyLocks::new();
        let first = locks.lock("bucket", "key");
        assert!(locks.try_lock("bucket", "key").is_none());
        assert!(locks.try_lock("bucket", "key").is_none(), "a refused attempt released the lock");
        assert!(locks.try_lock("bucket", "other").is_some());
        assert!(locks.try_lock("other", "key").is_some());
        drop(first);
        assert!(locks.try_lock("bucket", "key").is_some());
    }
}
