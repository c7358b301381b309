//! Writers of the same key take turns; writers of different keys do not meet.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use parking_lot::{Condvar, Mutex};

const SHARDS: usize = 64;

/// The keys being written.
#[derive(Debug)]
pub(crate) struct KeyLocks {
    shards: Vec<Shard>,
    hasher: RandomState,
}

#[derive(Debug, Default)]
struct Shard {
    held: Mutex<HashSet<String>>,
    released: Condvar,
}

/// A key that is ours to write until this is dropped.
#[derive(Debug)]
pub(crate) struct KeyGuard<'a> {
    shard: &'a Shard,
    name: String,
}

impl KeyLocks {
    pub(crate) fn new() -> Self {
        let shards = (0..SHARDS).map(|_| Shard::default()).collect();
        Self { shards, hasher: RandomState::new() }
    }

    fn shard(&self, bucket: &str, key: &str) -> (&Shard, String) {
        // No bucket has a slash in its name, so no two pairs give the same text.
        let name = format!("{bucket}/{key}");
        let hash = usize::try_from(self.hasher.hash_one(&name) % SHARDS as u64).unwrap_or(0);
        (&self.shards[hash], name)
    }

    /// Waits until the key is free and takes it.
    ///
    /// Whoever holds one key and waits for another takes them in the order of their names.
    pub(crate) fn lock(&self, bucket: &str, key: &str) -> KeyGuard<'_> {
        let (shard, name) = self.shard(bucket, key);
        let mut held = shard.held.lock();
        while !held.insert(name.clone()) {
            shard.released.wait(&mut held);
        }
        drop(held);
        KeyGuard { shard, name }
    }

    /// Takes the key if it is free.
    pub(crate) fn try_lock(&self, bucket: &str, key: &str) -> Option<KeyGuard<'_>> {
        let (shard, name) = self.shard(bucket, key);
        let taken = shard.held.lock().insert(name.clone());
        // Lazily: a guard that is made and dropped would release the key of whoever holds it.
        taken.then(|| KeyGuard { shard, name })
    }
}

impl Drop for KeyGuard<'_> {
    fn drop(&mut self) {
        self.shard.held.lock().remove(&self.name);
        self.shard.released.notify_all();
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
