//! Caches listings for all requests for the same directory in the same state.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::cursor::Cursor;
use super::read_page;
use crate::file::description::Version;
use crate::lookup::finder::Finder;
use crate::page::Page;

/// The maximal memory of all listings, cached ones and those being sent. Beyond it, requests for
/// listings fail.
const BYTES_MAX: u64 = 64 << 20;

/// The memory reserved for a listing that is being created: few are longer.
const RESERVED_BYTES: u64 = 2 << 20;

/// The maximal memory of cached listings.
const CACHED_BYTES: u64 = 16 << 20;

/// The expected number of cached listings, which determines the initial size of the map.
const CACHED_EXPECTED: usize = 16;

/// The key of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ListingKey {
    path: Box<[u8]>,
    cursor: Cursor,
    as_json: bool,
    /// A unique number if each request must read the directory; otherwise 0.
    serial: u64,
}

/// A listing, for all requests for it.
#[derive(Debug)]
pub(crate) struct CachedListing {
    pub(crate) page: Page,
    memory: Reserved,
}

/// A part of the memory of all listings, until it is dropped.
#[derive(Debug)]
struct Reserved {
    bytes: u64,
    alive_bytes: Arc<AtomicU64>,
}

impl Reserved {
    /// Reserves memory, if there is enough.
    fn new(alive_bytes: &Arc<AtomicU64>, bytes: u64) -> Option<Self> {
        let alive_before = alive_bytes.fetch_add(bytes, Relaxed);
        // Dropped if there is not enough.
        let reserved = Self { bytes, alive_bytes: Arc::clone(alive_bytes) };
        (alive_before + bytes <= BYTES_MAX).then_some(reserved)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.alive_bytes.fetch_sub(self.bytes, Relaxed);
    }
}

/// A recent listing.
#[derive(Debug)]
struct Entry {
    listing: Arc<CachedListing>,
    /// The version of the directory before it was read, which changes with its names.
    version: Version,
    /// The time before it was read. Lengths and times of files, and targets of links, change without
    /// a change of the directory; they are valid for some time from then on.
    read_ms: u64,
}

#[derive(Debug, Clone)]
struct ByBytes;

impl Weighter<ListingKey, Arc<Entry>> for ByBytes {
    fn weight(&self, _: &ListingKey, entry: &Arc<Entry>) -> u64 {
        entry.listing.memory.bytes
    }
}

/// The cache of listings.
#[derive(Debug)]
pub(crate) struct ListingCache {
    entries: Cache<ListingKey, Arc<Entry>, ByBytes>,
    valid_ms: u64,
    alive_bytes: Arc<AtomicU64>,
    serials: AtomicU64,
}

impl ListingCache {
    pub(crate) fn new(valid_ms: u64) -> Self {
        Self {
            entries: Cache::with_weighter(CACHED_EXPECTED, CACHED_BYTES, ByBytes),
            valid_ms,
            alive_bytes: Arc::default(),
            serials: AtomicU64::new(0),
        }
    }

    pub(crate) fn key(&self, path: &[u8], cursor: Cursor, as_json: bool) -> ListingKey {
        let serial = if self.valid_ms == 0 { self.serials.fetch_add(1, Relaxed) } else { 0 };
        ListingKey { path: path.into(), cursor, as_json, serial }
    }

    /// Returns the listing, if it is recent, and the directory has still this version.
    pub(crate) fn get(
        &self,
        key: &ListingKey,
        version: Version,
        now_ms: u64,
    ) -> Option<Arc<CachedListing>> {
        let entry = self.entries.get(key)?;
        let is_valid = entry.version == version && self.is_fresh(&entry, now_ms);
        is_valid.then(|| Arc::clone(&entry.listing))
    }

    fn is_fresh(&self, entry: &Entry, now_ms: u64) -> bool {
        now_ms < entry.read_ms.saturating_add(self.valid_ms)
    }

    /// Reads the directory, which had this version at `now_ms`.
    ///
    /// # Errors
    /// The status of the response: the disk fails, or listings take too much memory.
    pub(crate) fn create(
        &self,
        finder: &Finder,
        dir: OwnedFd,
        key: ListingKey,
        version: Version,
        now_ms: u64,
    ) -> Result<Arc<CachedListing>, u16> {
        let reserved = Reserved::new(&self.alive_bytes, RESERVED_BYTES).ok_or(503_u16)?;
        let page = read_page(finder, dir, &key.path, &key.cursor, key.as_json);
        let page = page.map_err(|_errno| 500_u16)?;
        let bytes = page.text.len() as u64;
        drop(reserved);
        let memory = Reserved::new(&self.alive_bytes, bytes).ok_or(503_u16)?;
        let listing = Arc::new(CachedListing { page, memory });
        if self.valid_ms > 0 {
            let entry = Entry { listing: Arc::clone(&listing), version, read_ms: now_ms };
            self.entries.insert(key, Arc::new(entry));
        }
        Ok(listing)
    }

    /// Removes listings that are not valid any more.
    pub(crate) fn sweep(&self, now_ms: u64) {
        self.entries.retain(|_, entry| self.is_fresh(entry, now_ms));
    }

    /// Returns the memory of all listings.
    pub(crate) fn alive_bytes(&self) -> u64 {
        self.alive_bytes.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lookup::root::Root;

    fn finder(dir: &std::path::Path) -> Finder {
        Finder {
            root: Root::open(dir).unwrap(),
            with_dotfiles: false,
            forms: None,
            with_listings: true,
            cache_control: None,
        }
    }

    fn open(path: &std::path::Path) -> (OwnedFd, Version) {
        let fd = OwnedFd::from(std::fs::File::open(path).unwrap());
        let stat = rustix::fs::fstat(&fd).unwrap();
        (fd, Version::of(&stat))
    }

    #[test]
    fn listing_is_cached_for_a_time_and_until_the_directory_changes() {
        let dir = tempfile::tempdir().unwrap();
        let finder = finder(dir.path());
        let listings = ListingCache::new(1000);
        let key = listings.key(b"/", Cursor::default(), false);
        let (fd, version) = open(dir.path());
        let created = listings.create(&finder, fd, key.clone(), version, 5000).unwrap();
        let is_cached = |version, now_ms| {
            let cached = listings.get(&key, version, now_ms);
            cached.is_some_and(|cached| Arc::ptr_eq(&cached, &created))
        };
        assert!(is_cached(version, 5000) && is_cached(version, 5999) && !is_cached(version, 6000));
        assert!(
            listings.get(&listings.key(b"/", Cursor::default(), true), version, 5000).is_none(),
            "JSON"
        );
        assert!(
            listings.get(&listings.key(b"/a/", Cursor::default(), false), version, 5000).is_none()
        );
        std::fs::create_dir(dir.path().join("new")).unwrap();
        assert!(!is_cached(open(dir.path()).1, 5001), "it has changed");
    }

    #[test]
    fn without_validity_no_listing_is_cached() {
        let dir = tempfile::tempdir().unwrap();
        let listings = ListingCache::new(0);
        let (first, second) = (
            listings.key(b"/", Cursor::default(), false),
            listings.key(b"/", Cursor::default(), false),
        );
        assert_ne!(first, second);
        let (fd, version) = open(dir.path());
        let created = listings.create(&finder(dir.path()), fd, first.clone(), version, 0).unwrap();
        assert!(listings.get(&first, version, 0).is_none());
        drop(created);
        assert_eq!(listings.alive_bytes(), 0);
    }

    #[test]
    fn expired_and_sent_listings_take_no_memory() {
        let dir = tempfile::tempdir().unwrap();
        let finder = finder(dir.path());
        let listings = ListingCache::new(1000);
        let create = || {
            let (fd, version) = open(dir.path());
            listings.create(&finder, fd, listings.key(b"/", Cursor::default(), false), version, 0)
        };
        let being_sent = create().unwrap();
        listings.sweep(999);
        let alive_bytes = listings.alive_bytes();
        assert!(alive_bytes >= being_sent.page.text.len() as u64);
        listings.sweep(1000);
        assert_eq!(listings.alive_bytes(), alive_bytes, "it is being sent");
        drop(being_sent);
        assert_eq!(listings.alive_bytes(), 0);
        listings.alive_bytes.store(BYTES_MAX, Relaxed);
        assert_eq!(create().map(drop), Err(503), "too many");
    }

    #[test]
    fn listings_being_created_count_for_the_limit() {
        let alive_bytes = Arc::default();
        let reserved: Vec<_> =
            std::iter::from_fn(|| Reserved::new(&alive_bytes, RESERVED_BYTES)).take(100).collect();
        assert_eq!(reserved.len() as u64, BYTES_MAX / RESERVED_BYTES);
        assert_eq!(alive_bytes.load(Relaxed), BYTES_MAX, "the refused part was released");
        drop(reserved);
        assert_eq!(alive_bytes.load(Relaxed), 0);
        assert!(Reserved::new(&alive_bytes, BYTES_MAX + 1).is_none(), "too long");
        assert_eq!(alive_bytes.load(Relaxed), 0);
    }
}
