//! A disk's cache, which is created when it is used for the first time.

use std::sync::Arc;

use haul_disk::Disk;
use parking_lot::Mutex;

use crate::tier::cache::BlockCache;

pub(crate) const CACHE: &str = "REMOTE.cache";

/// A cache that is created when it is used for the first time.
#[derive(Debug)]
pub(crate) struct LazyCache {
    disk: Arc<dyn Disk>,
    bytes: u64,
    cache: Mutex<Option<Arc<BlockCache>>>,
}

impl LazyCache {
    /// Returns a cache of up to `bytes` in a file on `disk`, which does not exist yet.
    pub(crate) fn new(disk: &Arc<dyn Disk>, bytes: u64) -> Self {
        Self { disk: Arc::clone(disk), bytes, cache: Mutex::default() }
    }

    pub(crate) fn get(&self) -> haul_disk::Result<Arc<BlockCache>> {
        let mut cache = self.cache.lock();
        if let Some(cache) = &*cache {
            return Ok(Arc::clone(cache));
        }
        let created = Arc::new(BlockCache::create(&*self.disk, CACHE, self.bytes)?);
        *cache = Some(Arc::clone(&created));
        Ok(created)
    }
}
