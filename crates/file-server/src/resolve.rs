//! Finds the file of a request, at once if possible.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures_channel::oneshot::channel;
use rustix::fs::{self, Mode, OFlags};

use crate::context::{ThreadContext, ms_since};
use crate::file::cache_key::{CacheKey, KeyRef};
use crate::file::description::{HotFile, OpenFile, Version};
use crate::file::residency::read_resident;
use crate::file::source::FileSource;
use crate::file::tier::Tier;
use crate::listing::cursor::Cursor;
use crate::lookup::cache::{CachedFile, FileCache};
use crate::lookup::disk_threads::QueueFull;
use crate::lookup::encoded_forms::EncodedForms;
use crate::lookup::finder::{PathEntry, Search, WouldBlock};
use crate::lookup::root::DiskWait;
use crate::outcome::{DiskResult, DiskWork, Lookup, Pending};
use crate::page::Page;
use crate::request::file_request::FileRequest;
use crate::request::path::encoded;
use crate::send::read::load;

impl ThreadContext {
    /// Finds the file of a request: in the caches, or among the names that the kernel has cached.
    pub(crate) fn lookup(&self, request: &FileRequest<'_>, now_ms: u64) -> Lookup {
        let shared = &self.shared;
        let key = request.key();
        let cached = match shared.cache.get(key, now_ms) {
            Some(CachedFile { source, is_fresh: true }) if source.is_as_described() => {
                return Lookup::File(source);
            }
            stale => stale.map(|cached| cached.source),
        };
        let search = Search { wait: DiskWait::Forbidden, now_ms, cached: cached.as_ref() };
        let found = shared.finder.find(key, search);
        self.read_due_directory();
        match found {
            Ok(entry) => self.resolve(request, entry, now_ms),
            Err(WouldBlock) => self.find_on_disk(request, now_ms),
        }
    }

    /// Has a disk thread read a directory in which lookups searched often. No request waits for it.
    fn read_due_directory(&self) {
        let shared = &self.shared;
        let Some(dir) = shared.finder.forms.as_ref().and_then(EncodedForms::take_due) else {
            return;
        };
        let (finder, started) = (Arc::clone(&shared.finder), shared.started);
        let read = move || finder.read_forms(dir, ms_since(started, Instant::now()));
        // If the queue is full, the directory is read after more searches.
        let submitted = shared.disk.submit_small(None, read);
        self.counts.disk_jobs.add(u64::from(submitted.is_ok()));
    }

    /// Continues a lookup with the result of a disk thread.
    pub(crate) fn resume(&self, request: &FileRequest<'_>, result: DiskResult) -> Lookup {
        match result {
            DiskResult::Entry(entry, found_ms) => self.resolve(request, entry, found_ms),
            DiskResult::Loaded(file, tier) => Lookup::File(FileSource::Memory(file, tier)),
            DiskResult::Listed(listing) => Lookup::Listing(listing),
            DiskResult::Failed(status) => self.fail(request, status),
        }
    }

    fn resolve(&self, request: &FileRequest<'_>, entry: PathEntry, found_ms: u64) -> Lookup {
        self.shared.cache.update(request.key(), &entry);
        match entry {
            PathEntry::Unchanged(memory @ FileSource::Memory(..)) => Lookup::File(memory),
            PathEntry::File(file) | PathEntry::Unchanged(FileSource::Open(file)) => {
                self.load(request, file, found_ms)
            }
            PathEntry::WithoutSlash => {
                let mut location = encoded(&request.path) + "/";
                if let Some(query) = request.query {
                    location = format!("{location}?{}", String::from_utf8_lossy(query));
                }
                Lookup::Page(Page::for_status(301).with("location", location))
            }
            PathEntry::Directory(dir) => self.list(request, dir),
            PathEntry::Status(status) => self.fail(request, status),
        }
    }

    /// Without descriptors, and with a disk that fails or has too many jobs, the cached file is the
    /// best response.
    fn fail(&self, request: &FileRequest<'_>, status: u16) -> Lookup {
        let is_temporary = matches!(status, 500 | 503);
        let cached = is_temporary.then(|| self.shared.cache.any(request.key())).flatten();
        cached.map_or_else(|| Lookup::Page(Page::for_status(status)), Lookup::File)
    }

    /// Finds the file on a disk thread. A request for a file that was valid until lately does not
    /// wait for it, because the queue of the disk threads may be long.
    fn find_on_disk(&self, request: &FileRequest<'_>, now_ms: u64) -> Lookup {
        let (shared, key) = (&self.shared, request.key());
        let (finder, cache) = (Arc::clone(&shared.finder), Arc::clone(&shared.cache));
        let (owned_key, started) = (CacheKey::of(key), shared.started);
        let work = DiskWork::Find(owned_key.clone());
        let loads_max = if request.is_head { 0 } else { shared.hot_bytes_max };
        let find = move || {
            // The time before the lookup, which may miss later changes.
            let found_ms = ms_since(started, Instant::now());
            let key = owned_key.as_ref();
            let cached = cache.any(key);
            let search =
                Search { wait: DiskWait::Allowed, now_ms: found_ms, cached: cached.as_ref() };
            let entry = finder.find(key, search);
            let entry = entry.unwrap_or(PathEntry::Status(503));
            // On this thread, because the connections that wait may be closed.
            cache.update(key, &entry);
            match entry {
                // Read by the same job: to pass the file back and forth costs more than to read it.
                PathEntry::File(file) if (1..=loads_max).contains(&file.meta.version.bytes) => {
                    load_hot(&cache, key, file, found_ms)
                }
                entry => DiskResult::Entry(entry, found_ms),
            }
        };
        if !shared.cache.has_validity() {
            return self.find_alone(request, find);
        }
        let recent = shared.cache.any_recent(key, now_ms);
        if let Some(cached) = recent.filter(FileSource::is_as_described) {
            drop(self.submit(work, true, find));
            return Lookup::File(cached);
        }
        // Other requests use the cached file as long as one checks it, so the check is always done.
        let is_cached = shared.cache.any(key).is_some();
        Lookup::Pending(self.submit(work, is_cached, find))
    }

    /// Finds the file for one request, which must see every change: another lookup may have begun
    /// before the change.
    fn find_alone(
        &self,
        request: &FileRequest<'_>,
        find: impl FnOnce() -> DiskResult + Send + 'static,
    ) -> Lookup {
        let interest = Arc::new(());
        let (sender, result) = channel();
        let job = move || drop(sender.send(find()));
        match self.shared.disk.submit_small(Some(Arc::downgrade(&interest)), job) {
            Ok(()) => {
                self.counts.disk_jobs.add(1);
                Lookup::Pending(Pending { result, _interest: interest })
            }
            Err(QueueFull) => self.fail(request, 503),
        }
    }

    /// Reads a small file into the cache.
    fn load(&self, request: &FileRequest<'_>, file: Arc<OpenFile>, found_ms: u64) -> Lookup {
        let (shared, key) = (&self.shared, request.key());
        if let Some(hot) = shared.cache.hot_in_state(key, &file.meta) {
            return Lookup::File(FileSource::Memory(hot, Tier::Memory));
        }
        let bytes = file.meta.version.bytes;
        if request.is_head || shared.hot_bytes_max == 0 || bytes > shared.hot_bytes_max {
            let file = shared.cache.insert_open(key, file, found_ms);
            return Lookup::File(FileSource::Open(file));
        }
        if let Some(body) = read_resident(&file) {
            let hot = insert_hot(&shared.cache, key, file, body, found_ms);
            return Lookup::File(FileSource::Memory(hot, Tier::Resident));
        }
        let work = DiskWork::Load(key.key_for(&file.meta), file.meta.version);
        let (key, cache) = (CacheKey::of(key), Arc::clone(&shared.cache));
        Lookup::Pending(
            self.submit(work, false, move || load_hot(&cache, key.as_ref(), file, found_ms)),
        )
    }

    /// Lists a directory in its current state, unless a listing of this state is cached.
    fn list(&self, request: &FileRequest<'_>, dir: Arc<OwnedFd>) -> Lookup {
        let Ok(stat) = fs::fstat(&*dir) else { return self.fail(request, 500) };
        let shared = &self.shared;
        let (now_ms, version) = (shared.ms(Instant::now()), Version::of(&stat));
        let Some(cursor) = Cursor::parse(request.query.unwrap_or_default()) else {
            return Lookup::Page(Page::for_status(400));
        };
        let key = shared.listings.key(&request.path, cursor, request.fields.accepts_json);
        if let Some(listing) = shared.listings.get(&key, version, now_ms) {
            return Lookup::Listing(listing);
        }
        let (finder, listings) = (Arc::clone(&shared.finder), Arc::clone(&shared.listings));
        let work = DiskWork::List(key.clone(), version);
        Lookup::Pending(self.submit(work, false, move || {
            let Ok(dir) = own_description(dir) else { return DiskResult::Failed(503) };
            match listings.create(&finder, dir, key, version, now_ms) {
                Ok(listing) => DiskResult::Listed(listing),
                Err(status) => DiskResult::Failed(status),
            }
        }))
    }

    /// Has work done on a disk thread, once for all requests that wait for it; if not `always`, only
    /// while one of them waits.
    fn submit(
        &self,
        work: DiskWork,
        always: bool,
        job: impl FnOnce() -> DiskResult + Send + 'static,
    ) -> Pending {
        let shared = &self.shared;
        let joined = shared.single_flight.join(work);
        let interest = joined.interest;
        if let Some(leader) = joined.leader {
            let held = always.then(|| Arc::clone(&interest));
            let submitted = shared.disk.submit_small(Some(Arc::downgrade(&interest)), move || {
                leader.complete(&job());
                drop(held);
            });
            // If the queue is full, the leader was dropped, which notifies all waiters.
            self.counts.disk_jobs.add(u64::from(submitted.is_ok()));
        }
        Pending { result: joined.result, _interest: interest }
    }
}

/// Returns a description of its own: the position of a shared one would be shared, too.
fn own_description(dir: Arc<OwnedFd>) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    Arc::try_unwrap(dir).or_else(|dir| fs::openat(&*dir, ".", flags, Mode::empty()))
}

/// Reads a small file, which was found at `found_ms`, into the cache.
fn load_hot(cache: &FileCache, key: KeyRef<'_>, file: Arc<OpenFile>, found_ms: u64) -> DiskResult {
    let (body, tier) = match read_resident(&file) {
        Some(body) => (body, Tier::Resident),
        None => match load(&file) {
            Ok(body) => (body, Tier::Read),
            Err(_error) => return DiskResult::Failed(500),
        },
    };
    DiskResult::Loaded(insert_hot(cache, key, file, body, found_ms), tier)
}

/// Caches the content of a small file, which was found at `found_ms`.
fn insert_hot(
    cache: &FileCache,
    key: KeyRef<'_>,
    file: Arc<OpenFile>,
    body: Bytes,
    found_ms: u64,
) -> Arc<HotFile> {
    // Other requests may use the open file, too.
    let meta = Arc::try_unwrap(file).map_or_else(|file| file.meta.clone(), |file| file.meta);
    cache.insert_hot(key, meta, body, found_ms)
}
