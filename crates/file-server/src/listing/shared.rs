//! Listings, made once for all who ask for the same directory in the same state.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::answer::Page;
use crate::find::Finder;
use crate::listing::{self, Cursor};
use crate::meta::Version;

/// What all listings may take together, kept ones and those that slow clients have not read yet. No
/// further one is made beyond that.
const BYTES_MAX: u64 = 64 << 20;

/// What is set aside for one that is being made: few are longer.
const MADE_BYTES: u64 = 2 << 20;

/// What those may take that are kept for the next one who asks.
const KEPT_BYTES: u64 = 16 << 20;

/// How many are expected to be kept; only where the map begins to grow from.
const KEPT_EXPECTED: usize = 16;

/// Which listing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ListingKey {
    path: Box<[u8]>,
    cursor: Cursor,
    as_json: bool,
    /// Where each request is to look, this is another number each time.
    turn: u64,
}

/// A listing, for everybody who asked for it.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) page: Page,
    taken: Taken,
}

/// A part of what all may take, until it is dropped.
#[derive(Debug)]
struct Taken {
    bytes: u64,
    alive_bytes: Arc<AtomicU64>,
}

impl Taken {
    /// So much, where there is room for it.
    fn take(alive_bytes: &Arc<AtomicU64>, bytes: u64) -> Option<Self> {
        let alive_before = alive_bytes.fetch_add(bytes, Relaxed);
        // Given back, where there is none.
        let taken = Self { bytes, alive_bytes: Arc::clone(alive_bytes) };
        (alive_before + bytes <= BYTES_MAX).then_some(taken)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.alive_bytes.fetch_sub(self.bytes, Relaxed);
    }
}

/// A listing that was made a short while ago.
#[derive(Debug)]
struct Kept {
    listed: Arc<Listed>,
    /// Of the directory, before it was read: names that come or go change it.
    version: Version,
    /// Before it was read. Lengths and times of files, and where links lead, change without a
    /// change of the directory, and are believed from then on as long as anything is.
    seen_ms: u64,
}

#[derive(Debug, Clone)]
struct ByBytes;

impl Weighter<ListingKey, Arc<Kept>> for ByBytes {
    fn weight(&self, _: &ListingKey, kept: &Arc<Kept>) -> u64 {
        kept.listed.taken.bytes
    }
}

/// All listings.
#[derive(Debug)]
pub(crate) struct Listings {
    kept: Cache<ListingKey, Arc<Kept>, ByBytes>,
    valid_ms: u64,
    alive_bytes: Arc<AtomicU64>,
    turns: AtomicU64,
}

impl Listings {
    pub(crate) fn new(valid_ms: u64) -> Self {
        Self {
            kept: Cache::with_weighter(KEPT_EXPECTED, KEPT_BYTES, ByBytes),
            valid_ms,
            alive_bytes: Arc::default(),
            turns: AtomicU64::new(0),
        }
    }

    pub(crate) fn key(&self, path: &[u8], cursor: Cursor, as_json: bool) -> ListingKey {
        let turn = if self.valid_ms == 0 { self.turns.fetch_add(1, Relaxed) } else { 0 };
        ListingKey { path: path.into(), cursor, as_json, turn }
    }

    /// The listing, if one was made lately of the directory in the state it has now.
    pub(crate) fn kept(
        &self,
        key: &ListingKey,
        version: Version,
        now_ms: u64,
    ) -> Option<Arc<Listed>> {
        let kept = self.kept.get(key)?;
        let is_right = kept.version == version && self.is_fresh(&kept, now_ms);
        is_right.then(|| Arc::clone(&kept.listed))
    }

    fn is_fresh(&self, kept: &Kept, now_ms: u64) -> bool {
        now_ms < kept.seen_ms.saturating_add(self.valid_ms)
    }

    /// Reads the directory, which was in the state `version` at `now_ms`.
    ///
    /// # Errors
    /// A status: the disk fails, or there are too many listings.
    pub(crate) fn make(
        &self,
        finder: &Finder,
        dir: OwnedFd,
        key: ListingKey,
        version: Version,
        now_ms: u64,
    ) -> Result<Arc<Listed>, u16> {
        let set_aside = Taken::take(&self.alive_bytes, MADE_BYTES).ok_or(503_u16)?;
        let page = listing::read_page(finder, dir, &key.path, &key.cursor, key.as_json);
        let mut page = page.map_err(|_errno| 500_u16)?;
        page.text.shrink_to_fit();
        let bytes = page.text.len() as u64;
        drop(set_aside);
        let taken = Taken::take(&self.alive_bytes, bytes).ok_or(503_u16)?;
        let listed = Arc::new(Listed { page, taken });
        if self.valid_ms > 0 {
            let kept = Kept { listed: Arc::clone(&listed), version, seen_ms: now_ms };
            self.kept.insert(key, Arc::new(kept));
        }
        Ok(listed)
    }

    /// Drops those that are not believed any more.
    pub(crate) fn sweep(&self, now_ms: u64) {
        self.kept.retain(|_, kept| self.is_fresh(kept, now_ms));
    }

    /// What they take now.
    pub(crate) fn alive_bytes(&self) -> u64 {
        self.alive_bytes.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::Root;

    fn finder(dir: &std::path::Path) -> Finder {
        Finder {
            root: Root::open(dir).unwrap(),
            with_dotfiles: false,
            with_precompressed: false,
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
    fn a_listing_is_shared_for_so_long_and_while_the_directory_is_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let finder = finder(dir.path());
        let listings = Listings::new(1000);
        let key = listings.key(b"/", Cursor::default(), false);
        let (fd, version) = open(dir.path());
        let made = listings.make(&finder, fd, key.clone(), version, 5000).unwrap();
        let is_kept = |version, now_ms| {
            let kept = listings.kept(&key, version, now_ms);
            kept.is_some_and(|kept| Arc::ptr_eq(&kept, &made))
        };
        assert!(is_kept(version, 5000) && is_kept(version, 5999) && !is_kept(version, 6000));
        assert!(
            listings.kept(&listings.key(b"/", Cursor::default(), true), version, 5000).is_none(),
            "JSON"
        );
        assert!(
            listings.kept(&listings.key(b"/a/", Cursor::default(), false), version, 5000).is_none()
        );
        std::fs::create_dir(dir.path().join("new")).unwrap();
        assert!(!is_kept(open(dir.path()).1, 5001), "it changed");
    }

    #[test]
    fn where_each_request_looks_nothing_is_shared() {
        let dir = tempfile::tempdir().unwrap();
        let listings = Listings::new(0);
        let (first, second) = (
            listings.key(b"/", Cursor::default(), false),
            listings.key(b"/", Cursor::default(), false),
        );
        assert_ne!(first, second);
        let (fd, version) = open(dir.path());
        let made = listings.make(&finder(dir.path()), fd, first.clone(), version, 0).unwrap();
        assert!(listings.kept(&first, version, 0).is_none());
        drop(made);
        assert_eq!(listings.alive_bytes(), 0);
    }

    #[test]
    fn what_is_not_believed_any_more_or_read_by_anybody_takes_no_memory() {
        let dir = tempfile::tempdir().unwrap();
        let finder = finder(dir.path());
        let listings = Listings::new(1000);
        let make = || {
            let (fd, version) = open(dir.path());
            listings.make(&finder, fd, listings.key(b"/", Cursor::default(), false), version, 0)
        };
        let read_slowly = make().unwrap();
        listings.sweep(999);
        let alive_bytes = listings.alive_bytes();
        assert!(alive_bytes >= read_slowly.page.text.len() as u64);
        listings.sweep(1000);
        assert_eq!(listings.alive_bytes(), alive_bytes, "somebody still reads it");
        drop(read_slowly);
        assert_eq!(listings.alive_bytes(), 0);
        listings.alive_bytes.store(BYTES_MAX, Relaxed);
        assert_eq!(make().map(drop), Err(503), "there are enough");
    }

    #[test]
    fn those_that_are_being_made_count_and_never_exceed_the_limit_together() {
        let alive_bytes = Arc::default();
        let making: Vec<_> =
            std::iter::from_fn(|| Taken::take(&alive_bytes, MADE_BYTES)).take(100).collect();
        assert_eq!(making.len() as u64, BYTES_MAX / MADE_BYTES);
        assert_eq!(alive_bytes.load(Relaxed), BYTES_MAX, "what was refused was given back");
        drop(making);
        assert_eq!(alive_bytes.load(Relaxed), 0);
        assert!(Taken::take(&alive_bytes, BYTES_MAX + 1).is_none(), "longer than was thought");
        assert_eq!(alive_bytes.load(Relaxed), 0);
    }
}
