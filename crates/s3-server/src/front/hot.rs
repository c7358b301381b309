//! Hot objects, in memory with the heads of their responses.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use haul_file_store::{Attributes, ObjectInfo, ObjectLocation};
use haul_http_engine::PreparedHead;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::body::checksum::{Checksum, FULL_OBJECT, TYPE_ATTRIBUTE};

/// The longest object that is cached, unless the cache is small.
const OBJECT_BYTES_MAX: u64 = 1 << 20;

/// The share of the cache that one object may take.
const SHARES_MIN: u64 = 16;

/// A longer object is cached at its second request: it would evict many short ones.
const SHORT_BYTES_MAX: usize = 64 << 10;

/// The number of long objects whose first request is remembered.
const REMEMBERED_MAX: usize = 4096;

/// The memory of an entry beside its bytes: the maps of the cache and the allocator.
const OVERHEAD_BYTES: usize = 512;

/// An average entry, by which the cache sizes its maps.
const AVERAGE_BYTES: u64 = 16 << 10;

/// An object in memory.
#[derive(Debug)]
pub(crate) struct HotObject {
    /// The entry is used only while the object has this place.
    pub(crate) place: ObjectLocation,
    pub(crate) head: PreparedHead,
    pub(crate) body: Bytes,
    pub(crate) info: ObjectInfo,
    /// The number of tags, for which GET has a field.
    pub(crate) tags: usize,
    pub(crate) checksum: Option<HotChecksum>,
}

/// The checksum of a hot object, which is sent to clients that request it.
#[derive(Debug)]
pub(crate) struct HotChecksum {
    name: &'static str,
    value: String,
    kind: String,
}

impl HotChecksum {
    /// Returns the checksum kept among these attributes.
    pub(crate) fn kept(attributes: &Attributes) -> Option<Self> {
        let Checksum { algorithm, value } = Checksum::from_attributes(attributes)?;
        let kind = attributes.get(TYPE_ATTRIBUTE).unwrap_or(FULL_OBJECT).to_owned();
        Some(Self { name: algorithm.header(), value, kind })
    }

    /// Returns the fields of a response.
    pub(crate) fn fields(&self) -> [(&str, &[u8]); 2] {
        [(self.name, self.value.as_bytes()), (TYPE_ATTRIBUTE, self.kind.as_bytes())]
    }
}

#[derive(Debug, Clone)]
struct ByBytes;

impl Weighter<Box<str>, Arc<HotObject>> for ByBytes {
    fn weight(&self, path: &Box<str>, object: &Arc<HotObject>) -> u64 {
        (path.len() + object.head.len() + object.body.len() + OVERHEAD_BYTES) as u64
    }
}

/// The cache of hot objects, by bucket and key. One scan of other objects does not empty it
/// (S3-FIFO).
#[derive(Debug)]
pub(crate) struct HotObjects {
    cache: Option<Cache<Box<str>, Arc<HotObject>, ByBytes>>,
    object_bytes_max: u64,
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
    pub(crate) hits: u64,
}

impl HotObjects {
    /// Creates a cache of so many bytes; 0: nothing is cached.
    pub(crate) fn new(bytes_max: u64) -> Self {
        let items = usize::try_from(bytes_max / AVERAGE_BYTES).unwrap_or(usize::MAX).max(1);
        let cache = (bytes_max > 0).then(|| Cache::with_weighter(items, bytes_max, ByBytes));
        Self {
            cache,
            object_bytes_max: OBJECT_BYTES_MAX.min(bytes_max / SHARES_MIN),
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

    /// Caches an object, unless it is too long, or long and requested for the first time.
    pub(crate) fn insert(&self, path: &str, object: Arc<HotObject>) {
        let bytes = object.body.len();
        let Some(cache) = &self.cache else { return };
        if bytes as u64 > self.object_bytes_max {
            return;
        }
        let hash = self.hasher.hash_one(path);
        if bytes > SHORT_BYTES_MAX && self.requested.get(&hash).is_none() {
            self.requested.insert(hash, ());
            return;
        }
        cache.insert(path.into(), object);
    }

    /// Returns the counters.
    pub(crate) fn stats(&self) -> HotStats {
        let size = self.cache.as_ref().map(|cache| (cache.len() as u64, cache.weight()));
        let (objects, bytes) = size.unwrap_or_default();
        HotStats { objects, bytes, hits: self.hits.load(Relaxed) }
    }
}
