//! The results of lookups and reads on disk threads.

use std::sync::Arc;

use futures_channel::oneshot::Receiver;

use crate::file::cache_key::CacheKey;
use crate::file::description::{HotFile, Version};
use crate::file::source::FileSource;
use crate::file::tier::Tier;
use crate::listing::cache::{CachedListing, ListingKey};
use crate::lookup::finder::PathEntry;
use crate::page::Page;

/// Work that is done once for all requests that wait for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum DiskWork {
    /// Finds the file of a key.
    Find(CacheKey),
    /// Reads a file in this state into the cache.
    Load(CacheKey, Version),
    /// Lists a directory in this state.
    List(ListingKey, Version),
}

/// The result of such work.
#[derive(Debug, Clone)]
pub(crate) enum DiskResult {
    /// The entry at the path, at this time of the server or later.
    Entry(PathEntry, u64),
    /// The file in the cache, read from this tier.
    Loaded(Arc<HotFile>, Tier),
    Listed(Arc<CachedListing>),
    /// The status of the response.
    Failed(u16),
}

/// Work of a disk thread that a request waits for.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) result: Receiver<DiskResult>,
    /// If this is dropped before the work begins, it is not done for this request.
    pub(crate) _interest: Arc<()>,
}

/// The result of the lookup of a request.
#[derive(Debug)]
pub(crate) enum Lookup {
    File(FileSource),
    Listing(Arc<CachedListing>),
    Page(Page),
    Pending(Pending),
}
