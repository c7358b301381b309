//! The cache of hot objects: their content in memory, and their prepared response heads.

mod after_put;
pub(crate) mod object;
pub(crate) mod room;

use std::hash::{BuildHasher, RandomState};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use haul_file_store::{Object, ObjectLocation};
use haul_store_pool::Pool;
use haul_sync::Sharded;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{Options, OptionsBuilder, Weighter};

use crate::hot::after_put::AfterPut;
use crate::hot::object::{HotContent, HotObject};
use crate::request::name::ObjectName;

/// The maximum length of a cached object, in bytes, unless the cache is small. Longer objects have
/// their own files, which the store can pin.
const OBJECT_BYTES_MAX: u64 = 4 << 20;

/// One object may take at most the cache's capacity divided by this number.
const SHARES_MIN: u64 = 16;

/// If a longer object would evict others, it is cached only at its second request, because it would
/// evict many short ones.
const SHORT_BYTES_MAX: u64 = 64 << 10;

/// A longer object is locked in the page cache. Up to this length, sending a file's pages costs at
/// least as much as copying.
const COPIED_BYTES_MAX: u64 = 256 << 10;

/// Connection threads may not read objects with this length or more, see [`Pool::get_cached`].
const LONG_BYTES_MIN: u64 = (1 << 20) + 1;

/// Connection threads do not verify longer objects. This is more than the store reads for them, so
/// that it never copies what can be locked.
const VERIFIED_BYTES_MAX: u64 = (1 << 20) + (64 << 10);

/// Each shard of the cache has room for at least this number of the longest objects.
const OBJECTS_MIN: u64 = 4;

/// The maximum number of shards in the cache.
const SHARDS_MAX: usize = 256;

/// The number of long objects whose first request is remembered: as many as the cache can hold,
/// within these bounds.
const REMEMBERED: RangeInclusive<u64> = 4 << 10..=64 << 10;

/// An entry's memory overhead in addition to its bytes: the cache's maps and the allocator.
const OVERHEAD_BYTES: u64 = 512;

/// The average memory of an entry, by which the cache sizes its maps.
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

/// The cache of hot objects, by bucket and key. A single scan over other objects does not empty it
/// (S3-FIFO).
#[derive(Debug)]
pub(crate) struct HotObjects {
    cache: Option<Cache<Box<str>, Arc<HotObject>, ByBytes, RandomState>>,
    bytes_max: u64,
    object_bytes_max: u64,
    /// `true` if objects are locked in the page cache.
    locks: bool,
    /// Hashed paths of long objects that were requested.
    requested: Cache<u64, ()>,
    hasher: RandomState,
    hits: Sharded<AtomicU64>,
    after_put: AfterPut,
}

/// The cache's counters.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HotStats {
    pub(crate) objects: u64,
    pub(crate) bytes: u64,
    pub(crate) hits: u64,
}

/// Returns the number of shards, which are locked separately. Each has room for several of the
/// longest objects.
fn shards(bytes_max: u64, object_bytes_max: u64) -> usize {
    let shards = bytes_max / (OBJECTS_MIN * object_bytes_max).max(1);
    usize::try_from(shards).unwrap_or(usize::MAX).clamp(1, SHARDS_MAX)
}

/// Returns the options for a cache with this capacity, in bytes.
fn options(bytes_max: u64, object_bytes_max: u64) -> Option<Options> {
    let items = usize::try_from(bytes_max / AVERAGE_BYTES).unwrap_or(usize::MAX).max(1);
    let mut options = OptionsBuilder::new();
    options.estimated_items_capacity(items).weight_capacity(bytes_max);
    // The default depends on the number of cores, and can leave no room for long objects.
    options.shards(shards(bytes_max, object_bytes_max));
    options.build().ok()
}

impl HotObjects {
    /// Creates a cache for `bytes_max` bytes; 0 caches nothing. With `locks`, long objects are
    /// locked in the page cache if the store permits it; other objects are copied when they are
    /// sent.
    pub(crate) fn new(bytes_max: u64, locks: bool) -> Self {
        let object_bytes_max = OBJECT_BYTES_MAX.min(bytes_max / SHARES_MIN);
        let options = options(bytes_max, object_bytes_max).filter(|_| bytes_max > 0);
        let new = |options| {
            Cache::with_options(options, ByBytes, RandomState::new(), DefaultLifecycle::default())
        };
        let (least, most) = (*REMEMBERED.start(), *REMEMBERED.end());
        let remembered = (bytes_max / SHORT_BYTES_MAX).clamp(least, most);
        Self {
            cache: options.map(new),
            bytes_max,
            object_bytes_max,
            locks,
            requested: Cache::new(usize::try_from(remembered).unwrap_or(usize::MAX)),
            hasher: RandomState::new(),
            hits: Sharded::default(),
            after_put: AfterPut::default(),
        }
    }

    /// Returns the object at `path` if it has not changed since it was cached.
    pub(crate) fn get(&self, path: &str, location: ObjectLocation) -> Option<Arc<HotObject>> {
        let found = self.cache.as_ref()?.get(path).filter(|object| object.location == location)?;
        self.hits.local().fetch_add(1, Relaxed);
        if found.is_unread.load(Relaxed) && found.is_unread.swap(false, Relaxed) {
            self.after_put.read();
        }
        Some(found)
    }

    /// Caches an object that was just stored, if such objects are read or if it replaces a cached
    /// one, and if it does not evict many others. Only then calls `object`.
    pub(crate) fn insert_stored(
        &self,
        ObjectName { bucket, key }: &ObjectName,
        bytes: u64,
        object: impl FnOnce() -> Option<HotObject>,
    ) {
        let Some(cache) = &self.cache else { return };
        let evicts_many = bytes > SHORT_BYTES_MAX && cache.weight() + bytes > cache.capacity();
        if evicts_many || bytes > COPIED_BYTES_MAX.min(self.object_bytes_max) {
            return;
        }
        let path = [&**bucket, "/", &**key].concat();
        if (self.after_put.admits() || cache.peek(&*path).is_some())
            && let Some(object) = object()
        {
            cache.insert(path.into(), Arc::new(object));
        }
    }

    /// Caches an object, unless it is too long, or it is long, would evict others, and is requested
    /// for the first time. Returns the object.
    pub(crate) fn insert(&self, path: &str, mut object: HotObject) -> Arc<HotObject> {
        let bytes = object.content.len();
        let Some(cache) = &self.cache else { return Arc::new(object) };
        let evicts_many = || bytes > SHORT_BYTES_MAX && cache.weight() + bytes > cache.capacity();
        if bytes > self.object_bytes_max || (evicts_many() && self.is_first(path)) {
            return Arc::new(object);
        }
        if let HotContent::Memory(content) = &object.content
            && bytes > SHORT_BYTES_MAX
        {
            // The buffer that received the content may be longer than the content.
            object.content = HotContent::Memory(Bytes::copy_from_slice(content));
        }
        let object = Arc::new(object);
        cache.insert(path.into(), Arc::clone(&object));
        object
    }

    /// Locks an object in the page cache and returns it, if it is short enough for a connection
    /// thread to verify.
    pub(crate) fn lock(
        &self,
        store: &Pool,
        path: &str,
        location: ObjectLocation,
    ) -> Option<HotObject> {
        let lengths = COPIED_BYTES_MAX + 1..=VERIFIED_BYTES_MAX;
        let object = self.lock_one(store, path, location, lengths)?;
        HotObject::new(location, &object, HotContent::Locked(Arc::clone(object.locked()?)))
    }

    /// Locks a long object in the page cache, and caches it. Returns it.
    pub(crate) fn lock_long(
        &self,
        store: &Pool,
        path: &str,
        location: ObjectLocation,
    ) -> Option<Object> {
        let object = self.lock_one(store, path, location, LONG_BYTES_MIN..=u64::MAX)?;
        let content = HotContent::Locked(Arc::clone(object.locked()?));
        if let Some(hot) = HotObject::new(location, &object, content) {
            self.insert(path, hot);
        }
        Some(object)
    }

    fn lock_one(
        &self,
        store: &Pool,
        path: &str,
        location: ObjectLocation,
        lengths: RangeInclusive<u64>,
    ) -> Option<Object> {
        let is_short = store.open_bytes_max_at(location) <= COPIED_BYTES_MAX;
        if !self.locks || is_short {
            return None;
        }
        let (bucket, key) = path.split_once('/')?;
        store.get_locked_at(bucket, key, location, lengths)
    }

    /// Caches a long object that was read from the disk. Other objects are cached when they are
    /// read from the page cache. `location` is the location before the read. May copy 4 MiB.
    pub(crate) fn insert_long(
        &self,
        store: &Pool,
        bucket: &str,
        location: ObjectLocation,
        object: &Object,
    ) {
        let is_long = (LONG_BYTES_MIN..=self.object_bytes_max).contains(&object.info.bytes);
        let key = &*object.info.key;
        // The object may have been overwritten after its location was determined.
        if !is_long || !object.is_in_memory() || store.location(bucket, key) != Some(location) {
            return;
        }
        let path = format!("{bucket}/{key}");
        if self.lock_long(store, &path, location).is_some() {
            return;
        }
        let content =
            usize::try_from(object.info.bytes).ok().and_then(|all| object.read(0, all).ok());
        let hot = content
            .and_then(|content| HotObject::new(location, object, HotContent::Memory(content)));
        if let Some(hot) = hot {
            self.insert(&path, hot);
        }
    }

    /// Notes a request for a long object. Returns `true` if it is the first one.
    fn is_first(&self, path: &str) -> bool {
        let hash = self.hasher.hash_one(path);
        let is_first = self.requested.get(&hash).is_none();
        if is_first {
            self.requested.insert(hash, ());
        }
        is_first
    }

    pub(crate) fn stats(&self) -> HotStats {
        let size = self.cache.as_ref().map(|cache| (cache.len() as u64, cache.weight()));
        let (objects, bytes) = size.unwrap_or_default();
        HotStats { objects, bytes, hits: self.hits.sum(|part| part) }
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

    const OBJECTS: usize = 20_000;
    const OBJECT_BYTES: u64 = 16 << 10;

    #[derive(Clone)]
    struct Equal;

    impl Weighter<usize, ()> for Equal {
        fn weight(&self, _key: &usize, (): &()) -> u64 {
            OBJECT_BYTES
        }
    }

    /// Returns the hit rate of a cache for `cached` objects over 400,000 requests, whose
    /// frequencies follow Zipf's law with the exponent 0.9. With `scan`, each object is also
    /// requested once meanwhile, in order.
    fn hit_rate(cached: u64, scan: bool) -> f64 {
        let mut total = 0.0;
        let add = |rank: u32| {
            total += f64::from(rank).powf(-0.9);
            total
        };
        let sums: Vec<f64> = (1_u32..).take(OBJECTS).map(add).collect();
        let bytes = cached * OBJECT_BYTES;
        let options = options(bytes, OBJECT_BYTES).unwrap();
        let cache: Cache<usize, (), Equal> =
            Cache::with_options(options, Equal, Default::default(), Default::default());
        let request = |object| {
            let is_hit = cache.get(&object).is_some();
            if !is_hit {
                cache.insert(object, ());
            }
            is_hit
        };
        let mut random = haul_testing::Random(1);
        let (mut hits, mut scanned) = (0, 0);
        let requests = 400_000;
        for number in 0..2 * requests {
            let share = u32::try_from(random.number() >> 32).unwrap();
            let wanted = f64::from(share) / f64::from(u32::MAX) * total;
            // Spreads the ranks over the order of the scan.
            let object = sums.partition_point(|sum| *sum < wanted) * 7919 % OBJECTS;
            let is_hit = request(object);
            // The first half fills the cache.
            if number >= requests {
                hits += u32::from(is_hit);
                if scan && scanned < OBJECTS && number % 20 == 0 {
                    request(scanned);
                    scanned += 1;
                }
            }
        }
        f64::from(hits) / f64::from(requests)
    }

    #[test]
    fn scan_leaves_the_hit_rate() {
        for cached in [1_000, 5_000] {
            let [without, with] = [false, true].map(|scan| hit_rate(cached, scan));
            println!("{cached}: {without:.3} without a scan, {with:.3} with one");
            assert!(with / without >= 0.97, "{with} and {without}");
        }
    }
}
