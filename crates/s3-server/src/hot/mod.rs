//! The cache of hot objects, in memory with the heads of their responses.

mod memory_file;
pub(crate) mod object;

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use haul_file_store::{Object, ObjectLocation, Store};
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};

use crate::hot::memory_file::MemoryFiles;
use crate::hot::object::{HotContent, HotObject};

/// The longest object that is cached, unless the cache is small. Longer ones have files of their
/// own, which the store can pin.
const OBJECT_BYTES_MAX: u64 = 4 << 20;

/// The share of the cache that one object may take.
const SHARES_MIN: u64 = 16;

/// A longer object is cached at its second request: it evicts many short ones.
const SHORT_BYTES_MAX: u64 = 64 << 10;

/// A longer object is cached in a file. Up to this length, sending pages of a file costs no less
/// than copying.
const COPIED_BYTES_MAX: u64 = 256 << 10;

/// Objects of this length and longer are not read from the page cache by the threads of
/// connections ([`Store::get_cached`]).
const LONG_BYTES_MIN: u64 = (1 << 20) + 1;

/// The number of the longest objects for which each shard of the cache has room.
const OBJECTS_MIN: u64 = 4;

/// The number of shards of the cache.
const SHARDS_MAX: usize = 256;

/// The number of long objects whose first request is remembered.
const REMEMBERED_MAX: usize = 4096;

/// The memory of an entry beside its bytes: the maps of the cache and the allocator.
const OVERHEAD_BYTES: u64 = 512;

/// An average entry, by which the cache sizes its maps.
const AVERAGE_BYTES: u64 = 16 << 10;

#[derive(Debug, Clone)]
struct ByBytes;

impl Weighter<Box<str>, Arc<HotObject>> for ByBytes {
    fn weight(&self, path: &Box<str>, object: &Arc<HotObject>) -> u64 {
        (path.len() + object.head.len() + object.tags.bytes()) as u64
            + object.content.memory_bytes()
            + OVERHEAD_BYTES
    }
}

/// The cache of hot objects, by bucket and key. One scan of other objects does not empty it
/// (S3-FIFO).
#[derive(Debug)]
pub(crate) struct HotObjects {
    cache: Option<Cache<Box<str>, Arc<HotObject>, ByBytes, RandomState>>,
    object_bytes_max: u64,
    files: MemoryFiles,
    /// Paths of long objects, hashed.
    requested: Cache<u64, ()>,
    hasher: RandomState,
    hits: AtomicU64,
}

/// Counters of the cache.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HotStats {
    pub(crate) objects: u64,
    pub(crate) bytes: u64,
    /// The descriptors of long objects.
    pub(crate) files: u64,
    pub(crate) hits: u64,
}

/// Returns the number of parts of the cache, which are locked separately. Each has room for
/// several of the longest objects.
fn shards(bytes_max: u64, object_bytes_max: u64) -> usize {
    let shards = bytes_max / (OBJECTS_MIN * object_bytes_max).max(1);
    usize::try_from(shards).unwrap_or(usize::MAX).clamp(1, SHARDS_MAX)
}

impl HotObjects {
    /// Creates a cache of so many bytes; 0: nothing is cached. Long objects have a file each, at
    /// most `files_max` and as many bytes, including those that are evicted and still being sent.
    /// More of them are copied when they are sent.
    pub(crate) fn new(bytes_max: u64, files_max: usize) -> Self {
        let object_bytes_max = OBJECT_BYTES_MAX.min(bytes_max / SHARES_MIN);
        let items = usize::try_from(bytes_max / AVERAGE_BYTES).unwrap_or(usize::MAX).max(1);
        let mut options = OptionsBuilder::new();
        options.estimated_items_capacity(items).weight_capacity(bytes_max);
        // The default depends on the number of cores, and can leave no room for long objects.
        options.shards(shards(bytes_max, object_bytes_max));
        let options = options.build().ok().filter(|_| bytes_max > 0);
        let new = |options| {
            Cache::with_options(options, ByBytes, RandomState::new(), DefaultLifecycle::default())
        };
        Self {
            cache: options.map(new),
            object_bytes_max,
            files: MemoryFiles::new(files_max, bytes_max),
            requested: Cache::new(REMEMBERED_MAX),
            hasher: RandomState::new(),
            hits: AtomicU64::new(0),
        }
    }

    /// Returns the object at `path` if it has not changed since it was cached.
    pub(crate) fn get(&self, path: &str, place: ObjectLocation) -> Option<Arc<HotObject>> {
        let found = self.cache.as_ref()?.get(path).filter(|object| object.place == place)?;
        self.hits.fetch_add(1, Relaxed);
        Some(found)
    }

    /// Caches an object, unless it is too long, or long and requested for the first time. Returns
    /// the object, whose content may have moved to a file.
    pub(crate) fn insert(&self, path: &str, mut object: HotObject) -> Arc<HotObject> {
        let bytes = object.content.len();
        let Some(cache) = &self.cache else { return Arc::new(object) };
        if bytes > self.object_bytes_max || (bytes > SHORT_BYTES_MAX && self.is_first(path)) {
            return Arc::new(object);
        }
        if let HotContent::Memory(content) = &object.content
            && bytes > SHORT_BYTES_MAX
        {
            let is_copied = bytes <= COPIED_BYTES_MAX;
            let file = if is_copied { None } else { self.files.create(content) };
            object.content = match file {
                Some(file) => HotContent::File(file),
                // The buffer that it was read into may be longer than the content.
                None => HotContent::Memory(Bytes::copy_from_slice(content)),
            };
        }
        let object = Arc::new(object);
        cache.insert(path.into(), Arc::clone(&object));
        object
    }

    /// Caches an object that was read from the disk, if it is long: others are cached when they are
    /// read from the page cache. `place` is that before the read. May copy 4 MiB.
    pub(crate) fn insert_long(
        &self,
        store: &Store,
        bucket: &str,
        place: ObjectLocation,
        object: &Object,
    ) {
        let is_long = (LONG_BYTES_MIN..=self.object_bytes_max).contains(&object.info.bytes);
        let key = &*object.info.key;
        // It may have been overwritten after its place was determined.
        if !is_long || !object.is_in_memory() || store.location(bucket, key) != Some(place) {
            return;
        }
        let content =
            usize::try_from(object.info.bytes).ok().and_then(|all| object.read(0, all).ok());
        let hot = content.and_then(|content| HotObject::new(place, object, content));
        if let Some(hot) = hot {
            self.insert(&format!("{bucket}/{key}"), hot);
        }
    }

    /// Notes a request for a long object; returns `true` if it is the first one.
    fn is_first(&self, path: &str) -> bool {
        let hash = self.hasher.hash_one(path);
        let is_first = self.requested.get(&hash).is_none();
        if is_first {
            self.requested.insert(hash, ());
        }
        is_first
    }

    /// Returns the counters.
    pub(crate) fn stats(&self) -> HotStats {
        let size = self.cache.as_ref().map(|cache| (cache.len() as u64, cache.weight()));
        let (objects, bytes) = size.unwrap_or_default();
        let files = self.files.open();
        HotStats { objects, bytes, files: files.files as u64, hits: self.hits.load(Relaxed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shard_has_room_for_the_longest_objects() {
        for (bytes_max, expected) in
            [(0, 1), (1 << 20, 4), (64 << 20, 4), (1 << 30, 64), (1 << 40, 256)]
        {
            let object_bytes_max = OBJECT_BYTES_MAX.min(bytes_max / SHARES_MIN);
            let shards = shards(bytes_max, object_bytes_max);
            assert_eq!(shards, expected, "{bytes_max}");
            assert!(bytes_max / shards as u64 >= OBJECTS_MIN * object_bytes_max, "{bytes_max}");
        }
    }
}
