//! What is asked for often, with a cache of one's own or without.

use std::sync::Arc;

use haul_disk::{File, PAGE_BYTES, read_full};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::error::Result;

type Page = Arc<[u8]>;

/// Counts the bytes of a page.
#[derive(Debug, Clone)]
struct Bytes;

impl Weighter<u64, Page> for Bytes {
    fn weight(&self, _offset: &u64, page: &Page) -> u64 {
        page.len() as u64
    }
}

/// Pages of a file, read through the page cache where they are not in our own.
pub(super) struct Hot {
    file: Arc<dyn File>,
    own: Option<Cache<u64, Page, Bytes>>,
}

impl Hot {
    /// With a cache of `own_bytes`, if any.
    pub(super) fn new(file: Arc<dyn File>, own_bytes: Option<u64>) -> Self {
        // Its parts fill unevenly, so that it needs room for some more than it shall keep.
        let cache = |bytes: u64| {
            let pages = usize::try_from(bytes).unwrap_or(usize::MAX) / PAGE_BYTES;
            Cache::with_weighter(pages, bytes + bytes / 8, Bytes)
        };
        Self { file, own: own_bytes.map(cache) }
    }

    pub(super) fn file(&self) -> &dyn File {
        &*self.file
    }

    /// How many pages our own cache has.
    pub(super) fn kept(&self) -> Option<usize> {
        self.own.as_ref().map(Cache::len)
    }

    /// Fills `page` with what is at `offset`.
    pub(super) fn read(&self, page: &mut [u8], offset: u64) -> Result<()> {
        let Some(own) = &self.own else {
            return read_full(&*self.file, page, offset).map(drop).map_err(Into::into);
        };
        if let Some(kept) = own.get(&offset) {
            page.copy_from_slice(&kept);
            return Ok(());
        }
        read_full(&*self.file, page, offset)?;
        own.insert(offset, Arc::from(&*page));
        Ok(())
    }
}
