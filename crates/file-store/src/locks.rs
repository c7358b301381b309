//! Writers of the same key take turns; writers of different keys do not meet.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

const SHARDS: usize = 64;

/// The keys being written.
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

/// A key that is locked until this is dropped, on any thread.
#[derive(Debug)]
pub(crate) struct KeyGuard {
    shards: Arc<[Shard]>,
    /// The index of the shard.
    shard: usize,
    name: String,
}

impl KeyLocks {
    pub(crate) fn new() -> Self {
        let shards = (0..SHARDS).map(|_| Shard::default()).collect();
        Self { shards, hasher: RandomState::new() }
    }

    /// Returns the index of the shard of a key, and the name of the key in it.
    fn shard_of(&self, bucket: &str, key: &str) -> (usize, String) {
        // No bucket has a slash in its name, so no two pairs give the same text.
        let name = format!("{bucket}/{key}");
        let shard = usize::try_from(self.hasher.hash_one(&name) % SHARDS as u64).unwrap_or(0);
        (shard, name)
    }

    fn guard(&self, shard: usize, name: String) -> KeyGuard {
        KeyGuard { shards: Arc::clone(&self.shards), shard, name }
    }

    /// Waits until the key is free and takes it.
    ///
    /// Whoever holds one key and waits for another takes them in the order of their names.
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

    /// Takes the key if it is free.
    pub(crate) fn try_lock(&self, bucket: &str, key: &str) -> Option<KeyGuard> {
        let (shard, name) = self.shard_of(bucket, key);
        let is_free = self.shards[shard].held.lock().insert(name.clone());
        // A guard that is created and dropped would unlock a key that another thread locked.
        is_free.then(|| self.guard(shard, name))
    }
}

impl Drop for KeyGuard {
    fn drop(&mut self) {
        let Shard { held, released } = &self.shards[self.shard];
        held.lock().remove(&self.name);
        released.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_held_by_one_at_a_time() {
        let locks = KeyLocks::new();
        let first = locks.lock("bucket", "key");
        assert!(locks.try_lock("bucket", "key").is_none());
        assert!(locks.try_lock("bucket", "key").is_none(), "a refusal released the key");
        assert!(locks.try_lock("bucket", "other").is_some());
        assert!(locks.try_lock("other", "key").is_some());
        drop(first);
        assert!(locks.try_lock("bucket", "key").is_some());
    }
}
