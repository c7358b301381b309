//! Caches files: the content of small ones, and the descriptors of longer ones.

use std::sync::Arc;

use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::finder::PathEntry;
use crate::config::Tiers;
use crate::file::cache_key::{CacheKey, KeyRef};
use crate::file::description::{HotFile, Meta, OpenFile};
use crate::file::freshness::{LastCheck, check_intervals_ms};
use crate::file::source::FileSource;
use crate::file::tier::Tier;

/// The memory of an entry beside its bytes: the maps of the cache and the allocator.
const OVERHEAD_BYTES: usize = 512;

/// The time for which a file stays open without requests, beside the time a lookup is valid.
const IDLE_MS: u64 = 10_000;

/// An open file in the cache.
#[derive(Debug)]
struct CachedOpen {
    file: Arc<OpenFile>,
    last_check: LastCheck,
}

#[derive(Debug, Clone)]
struct ByBytes;

impl Weighter<CacheKey, Arc<HotFile>> for ByBytes {
    fn weight(&self, key: &CacheKey, file: &Arc<HotFile>) -> u64 {
        (file.body.len() + file.meta.whole.len() + key.path.len() + OVERHEAD_BYTES) as u64
    }
}

/// A file found in the cache.
#[derive(Debug)]
pub(crate) struct CachedFile {
    pub(crate) source: FileSource,
    /// `false`: the caller must check the file.
    pub(crate) is_fresh: bool,
}

/// Both caches, which all threads share.
#[derive(Debug)]
pub(crate) struct FileCache {
    hot: Cache<CacheKey, Arc<HotFile>, ByBytes>,
    open: Cache<CacheKey, Arc<CachedOpen>>,
    valid_ms: u64,
    /// The time for which a file is not checked again, a share of the time of validity.
    check_ms: u64,
}

impl FileCache {
    pub(crate) fn new(cache_bytes: u64, tiers: &Tiers, valid_ms: u64) -> Self {
        // The number of entries only determines the initial size of the maps.
        let entries = cache_bytes / tiers.cache_object_bytes_max.max(1);
        let entries = usize::try_from(entries).unwrap_or(0).max(16);
        Self {
            hot: Cache::with_weighter(entries, cache_bytes, ByBytes),
            open: Cache::new(tiers.open_files),
            valid_ms,
            check_ms: check_intervals_ms(valid_ms).0,
        }
    }

    /// Returns a cached file, and whether it was checked lately: its content rather than its
    /// descriptor.
    pub(crate) fn get(&self, key: KeyRef<'_>, now_ms: u64) -> Option<CachedFile> {
        let file = match self.any_hot(key) {
            Some(file) => {
                let is_fresh = file.checked.is_fresh(now_ms, self.check_ms);
                CachedFile { source: FileSource::Memory(file, Tier::Memory), is_fresh }
            }
            None => {
                let cached = self.any_open(key)?;
                let is_fresh = cached.last_check.is_fresh(now_ms, self.check_ms);
                CachedFile { source: FileSource::Open(Arc::clone(&cached.file)), is_fresh }
            }
        };
        Some(file)
    }

    /// Returns the content of a file, if it is cached and a lookup just found it in this state.
    pub(crate) fn hot_in_state(&self, key: KeyRef<'_>, meta: &Meta) -> Option<Arc<HotFile>> {
        self.any_hot(key).filter(|file| file.meta == *meta)
    }

    /// A file without encoded forms is cached once, for all clients.
    fn any_hot(&self, key: KeyRef<'_>) -> Option<Arc<HotFile>> {
        let is_right =
            |file: &Arc<HotFile>| !file.meta.variant.varies || key == key.without_codings();
        let file = self.hot.get(&key.without_codings()).filter(is_right);
        file.or_else(|| self.hot.get(&key).filter(|file| file.meta.variant.varies))
    }

    /// Caches the content of a file, which was found in this state at `found_ms`.
    pub(crate) fn insert_hot(
        &self,
        key: KeyRef<'_>,
        meta: Meta,
        body: Bytes,
        found_ms: u64,
    ) -> Arc<HotFile> {
        self.remove_invariant(key, &meta);
        let cache_key = key.key_for(&meta);
        let file = Arc::new(HotFile { meta, body, checked: LastCheck::at(found_ms) });
        self.hot.insert(cache_key, Arc::clone(&file));
        file
    }

    fn any_open(&self, key: KeyRef<'_>) -> Option<Arc<CachedOpen>> {
        let is_right = |cached: &Arc<CachedOpen>| {
            !cached.file.meta.variant.varies || key == key.without_codings()
        };
        let cached = self.open.get(&key.without_codings()).filter(is_right);
        cached.or_else(|| self.open.get(&key).filter(|cached| cached.file.meta.variant.varies))
    }

    /// Caches an open file. A cached one in the same state stays, with its other descriptors.
    pub(crate) fn insert_open(
        &self,
        key: KeyRef<'_>,
        file: Arc<OpenFile>,
        now_ms: u64,
    ) -> Arc<OpenFile> {
        self.remove_invariant(key, &file.meta);
        let file = match self.any_open(key).filter(|cached| cached.file.meta == file.meta) {
            Some(cached) => Arc::clone(&cached.file),
            None => file,
        };
        let cached = CachedOpen { file: Arc::clone(&file), last_check: LastCheck::at(now_ms) };
        self.open.insert(key.key_for(&file.meta), Arc::new(cached));
        file
    }

    /// Removes entries for all clients, once the file has encoded forms.
    fn remove_invariant(&self, key: KeyRef<'_>, meta: &Meta) {
        if meta.variant.varies && key != key.without_codings() {
            let key = key.without_codings();
            self.hot.remove_if(&key, |file| !file.meta.variant.varies);
            self.open.remove_if(&key, |cached| !cached.file.meta.variant.varies);
        }
    }

    /// Removes cached files that differ from what a lookup just found. A failed lookup removes
    /// nothing.
    pub(crate) fn update(&self, key: KeyRef<'_>, found: &PathEntry) {
        let now = match found {
            PathEntry::File(file) => Some(&file.meta),
            PathEntry::Unchanged(_) | PathEntry::Status(500 | 503) => return,
            PathEntry::WithoutSlash | PathEntry::Directory(_) | PathEntry::Status(_) => None,
        };
        for other in [key, key.without_codings()] {
            // Forms for clients that accept other codings may still be valid.
            let is_other_form = |cached: &Meta| {
                other != key && cached.variant.varies && now.is_some_and(|now| now.variant.varies)
            };
            let is_stale =
                |cached: &Meta| !is_other_form(cached) && now.is_none_or(|now| cached != now);
            self.hot.remove_if(&other, |file| is_stale(&file.meta));
            self.open.remove_if(&other, |cached| is_stale(&cached.file.meta));
        }
    }

    /// Returns the file in the state of the last check, for lookups that fail.
    pub(crate) fn any(&self, key: KeyRef<'_>) -> Option<FileSource> {
        let hot = self.any_hot(key).map(|file| FileSource::Memory(file, Tier::Memory));
        hot.or_else(|| self.any_open(key).map(|cached| FileSource::Open(Arc::clone(&cached.file))))
    }

    /// Returns the file for the caller that must check it and cannot at once, if it was fresh until
    /// lately.
    pub(crate) fn any_recent(&self, key: KeyRef<'_>, now_ms: u64) -> Option<FileSource> {
        if let Some(file) = self.any_hot(key) {
            let is_recent = file.checked.was_fresh(now_ms, self.valid_ms);
            return is_recent.then_some(FileSource::Memory(file, Tier::Memory));
        }
        let cached = self.any_open(key)?;
        let is_recent = cached.last_check.was_fresh(now_ms, self.valid_ms);
        is_recent.then(|| FileSource::Open(Arc::clone(&cached.file)))
    }

    /// Returns `true` if cached files are used without a check for some time.
    pub(crate) fn has_validity(&self) -> bool {
        self.valid_ms > 0
    }

    /// Closes files without recent requests, and deleted ones, whose space on the disk is free only
    /// then.
    pub(crate) fn sweep(&self, now_ms: u64) {
        let idle_ms = self.valid_ms.saturating_add(IDLE_MS);
        for (key, cached) in self.open.iter() {
            // A request updates the time of the check.
            let is_idle = now_ms >= cached.last_check.at_ms().saturating_add(idle_ms);
            if is_idle || !has_name(&cached.file) {
                // Closed here, without the lock of the cache: closing can take a while.
                self.open.remove_if(&key, |now| Arc::ptr_eq(now, &cached));
            }
        }
    }

    /// Returns the number of files whose content is cached, and their memory.
    pub(crate) fn hot_size(&self) -> (usize, u64) {
        (self.hot.len(), self.hot.weight())
    }

    pub(crate) fn open_size(&self) -> usize {
        self.open.len()
    }
}

fn has_name(file: &OpenFile) -> bool {
    rustix::fs::fstat(&file.fd).is_ok_and(|stat| stat.st_nlink > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::coding::{AcceptedCodings, accepted_codings};
    use crate::file::description::Variant;

    fn meta(path: &std::path::Path, varies: bool) -> Meta {
        let stat = rustix::fs::stat(path).unwrap();
        Meta::new(b"a", &stat, Variant { coding: None, varies }, None).unwrap()
    }

    fn found(path: &std::path::Path, varies: bool) -> PathEntry {
        let fd = std::fs::File::open(path).unwrap().into();
        PathEntry::File(Arc::new(OpenFile::new(fd, meta(path, varies))))
    }

    #[test]
    fn lookup_updates_the_entries_of_all_clients() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, "old").unwrap();
        let any = KeyRef { accepted: AcceptedCodings::default(), path: b"/a" };
        let gzip = KeyRef { accepted: accepted_codings([&b"gzip"[..]]), ..any };
        let cached = |varies| {
            let cache = FileCache::new(1 << 20, &Tiers::default(), 1000);
            cache.insert_hot(any, meta(&path, varies), Bytes::from_static(b"old"), 0);
            if varies {
                cache.insert_hot(gzip, meta(&path, varies), Bytes::from_static(b"old"), 0);
            }
            cache
        };
        let left = |varies, key, found: &PathEntry| {
            let cache = cached(varies);
            cache.update(key, found);
            cache.hot_size().0
        };
        let same = [found(&path, false), found(&path, true)];
        assert_eq!((left(false, gzip, &same[0]), left(true, gzip, &same[1])), (1, 2));
        for status in [500, 503] {
            assert_eq!(left(false, gzip, &PathEntry::Status(status)), 1, "the lookup failed");
        }
        for found in [PathEntry::Status(404), PathEntry::WithoutSlash] {
            assert_eq!((left(false, gzip, &found), left(true, gzip, &found)), (0, 0));
        }
        let other = dir.path().join("b");
        std::fs::write(&other, "newer").unwrap();
        assert_eq!(left(false, gzip, &found(&other, false)), 0);
        assert_eq!(left(true, gzip, &found(&other, true)), 1, "the form of other clients");
        assert_eq!(left(true, gzip, &found(&other, false)), 0, "no forms are left");
    }

    #[test]
    fn deleted_and_idle_files_are_closed() {
        let dir = tempfile::tempdir().unwrap();
        let cache = FileCache::new(1 << 20, &Tiers::default(), 1000);
        for (name, at) in [("deleted", 5000), ("idle", 0), ("used", 5000)] {
            let path = dir.path().join(name);
            std::fs::write(&path, "a").unwrap();
            let PathEntry::File(file) = found(&path, false) else { unreachable!() };
            let key = KeyRef { accepted: AcceptedCodings::default(), path: name.as_bytes() };
            cache.insert_open(key, file, at);
        }
        cache.sweep(10_999);
        assert_eq!(cache.open_size(), 3);
        std::fs::remove_file(dir.path().join("deleted")).unwrap();
        cache.sweep(11_000);
        let left = |name: &str| {
            let key = KeyRef { accepted: AcceptedCodings::default(), path: name.as_bytes() };
            cache.any_open(key).is_some()
        };
        assert_eq!(["deleted", "idle", "used"].map(left), [false, false, true]);
    }
}
