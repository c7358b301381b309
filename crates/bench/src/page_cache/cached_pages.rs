//! Reads pages of a file, with or without an application cache in front of the page cache.

use std::sync::Arc;

use haul_disk::{File, PAGE_BYTES, read_full, resident};
use haul_measure::Result;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

type Page = Arc<[u8]>;

#[derive(Debug, Clone)]
struct PageBytes;

impl Weighter<u64, Page> for PageBytes {
    fn weight(&self, _offset: &u64, page: &Page) -> u64 {
        page.len() as u64
    }
}

/// A reader of pages with an optional application cache. A page that the application cache does not
/// have is read through the page cache.
pub(super) struct CachedPages {
    file: Arc<dyn File>,
    cache: Option<Cache<u64, Page, PageBytes>>,
}

impl CachedPages {
    /// Creates a reader of the pages of `file`, with a cache of `cache_bytes` bytes if given.
    pub(super) fn new(file: Arc<dyn File>, cache_bytes: Option<u64>) -> Self {
        // The shards of the cache fill unevenly, so a cache of exactly `bytes` would evict pages
        // before it is full. An eighth more prevents this.
        let cache = |bytes: u64| {
            let pages = usize::try_from(bytes).unwrap_or(usize::MAX) / PAGE_BYTES;
            Cache::with_weighter(pages, bytes + bytes / 8, PageBytes)
        };
        Self { file, cache: cache_bytes.map(cache) }
    }

    /// Returns the cached fraction of the first `bytes` bytes: in the application's cache if there
    /// is one, otherwise in the page cache.
    pub(super) fn cached(&self, bytes: u64) -> Result<f64> {
        let cached = match &self.cache {
            Some(cache) => cache.len() as f64 * PAGE_BYTES as f64,
            None => resident(&*self.file, 0, bytes)?.resident_bytes as f64,
        };
        Ok(cached / bytes as f64)
    }

    /// Reads the page at `offset`.
    pub(super) fn read(&self, page: &mut [u8], offset: u64) -> Result<()> {
        let cached = self.cache.as_ref().and_then(|cache| cache.get(&offset));
        if let Some(cached) = cached {
            page.copy_from_slice(&cached);
            return Ok(());
        }
        read_full(&*self.file, page, offset)?;
        if let Some(cache) = &self.cache {
            cache.insert(offset, Arc::from(&*page));
        }
        Ok(())
    }
}
