//! Big objects that are requested often, in memory.
//!
//! Big objects bypass the page cache, so that they do not evict what is hot. The file of one that is
//! itself hot is read into the page cache, locked there, and verified once. From then on the kernel
//! can send it without a copy: its pages cannot be evicted, so the bytes that are sent are those that
//! were verified. The memory for this has a limit.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use haul_disk::{File, Map};
use parking_lot::Mutex;

use crate::error::Result;

/// A file that is requested this often is pinned.
const REQUESTS_MIN: u32 = 3;

/// The time after which earlier requests do not count.
const REQUESTS_TIME: Duration = Duration::from_secs(600);

/// A pinned file that was not requested for this time makes room for another one. Files that are
/// requested more often than this would otherwise evict each other.
const IDLE_TIME: Duration = Duration::from_secs(10);

/// The number of files whose requests are counted.
const COUNTED_MAX: usize = 4096;

/// The pinned files, and the requests for others.
#[derive(Debug)]
pub(crate) struct PinnedFiles {
    bytes_max: u64,
    /// The kernel refused to lock memory.
    is_refused: AtomicBool,
    /// All locked bytes. Those of an evicted file count as long as it is being sent.
    bytes: Arc<AtomicU64>,
    files: Mutex<HashMap<u128, Entry>>,
}

#[derive(Debug)]
struct Entry {
    requests: u32,
    requested: Instant,
    state: State,
}

#[derive(Debug)]
enum State {
    Counted,
    /// A caller is about to pin it.
    Due,
    Pinned(Arc<PinnedFile>),
}

/// A file whose content is locked in the page cache, and verified.
#[derive(Debug)]
pub struct PinnedFile {
    file: Arc<dyn File>,
    _pages: Map,
    _room: Room,
}

impl AsFd for PinnedFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.descriptor().expect("only files with a descriptor can be mapped")
    }
}

/// A part of the memory for pinned files.
#[derive(Debug)]
struct Room {
    bytes: u64,
    all: Arc<AtomicU64>,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Relaxed);
    }
}

impl PinnedFiles {
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self {
            bytes_max,
            is_refused: AtomicBool::new(false),
            bytes: Arc::default(),
            files: Mutex::default(),
        }
    }

    /// Returns the number of locked bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Returns a file if it is pinned.
    pub(crate) fn get(&self, id: u128) -> Option<Arc<PinnedFile>> {
        if self.bytes_max == 0 {
            return None;
        }
        match &self.files.lock().get(&id)?.state {
            State::Pinned(file) => Some(Arc::clone(file)),
            State::Counted | State::Due => None,
        }
    }

    /// Counts a request for a file with `bytes`. Returns `true` if it should be pinned: then
    /// [`Self::pin`] has to be called.
    pub(crate) fn count(&self, id: u128, bytes: u64, now: Instant) -> bool {
        if bytes > self.bytes_max || self.is_refused.load(Relaxed) {
            return false;
        }
        let mut files = self.files.lock();
        if files.len() >= COUNTED_MAX && !files.contains_key(&id) {
            let is_recent = |entry: &Entry| now - entry.requested < IDLE_TIME;
            files.retain(|_, entry| matches!(entry.state, State::Pinned(_)) || is_recent(entry));
            if files.len() >= COUNTED_MAX {
                return false;
            }
        }
        let new = Entry { requests: 0, requested: now, state: State::Counted };
        let entry = files.entry(id).or_insert(new);
        if now - entry.requested > REQUESTS_TIME {
            entry.requests = 0;
        }
        entry.requests = entry.requests.saturating_add(1);
        entry.requested = now;
        let is_due = entry.requests >= REQUESTS_MIN && matches!(entry.state, State::Counted);
        if is_due {
            entry.state = State::Due;
        }
        is_due
    }

    /// Pins a file with `bytes`: maps the first of them with `map`, locks them, and calls `verify`.
    /// Returns `false` if there is no room.
    ///
    /// # Errors
    /// The memory cannot be locked, then no file is pinned any more; or an error of `map` or `verify`.
    pub(crate) fn pin(
        &self,
        id: u128,
        bytes: u64,
        map: impl FnOnce() -> Result<(Arc<dyn File>, Map)>,
        verify: impl FnOnce(&dyn File) -> Result<()>,
    ) -> Result<bool> {
        let pinned = self.load(bytes, map, verify);
        let mut files = self.files.lock();
        let is_pinned = matches!(pinned, Ok(Some(_)));
        if let Some(entry) = files.get_mut(&id) {
            entry.requests = 0;
            entry.state = match &pinned {
                Ok(Some(file)) => State::Pinned(Arc::clone(file)),
                _ => State::Counted,
            };
        }
        pinned.map(|_| is_pinned)
    }

    fn load(
        &self,
        bytes: u64,
        map: impl FnOnce() -> Result<(Arc<dyn File>, Map)>,
        verify: impl FnOnce(&dyn File) -> Result<()>,
    ) -> Result<Option<Arc<PinnedFile>>> {
        let Some(room) = self.make_room(bytes, Instant::now()) else { return Ok(None) };
        let (file, pages) = map()?;
        haul_disk::warm(&*file, 0, bytes)?;
        if let Err(refused) = pages.lock() {
            self.is_refused.store(true, Relaxed);
            return Err(refused.into());
        }
        verify(&*file)?;
        Ok(Some(Arc::new(PinnedFile { file, _pages: pages, _room: room })))
    }

    /// Reserves memory, and evicts files that are idle for it.
    fn make_room(&self, bytes: u64, now: Instant) -> Option<Room> {
        let add = |all: u64| all.checked_add(bytes).filter(|all| *all <= self.bytes_max);
        while self.bytes.fetch_update(Relaxed, Relaxed, add).is_err() {
            // Unlocking many pages takes time: not under the lock.
            drop(self.evict_idle(now)?);
        }
        Some(Room { bytes, all: Arc::clone(&self.bytes) })
    }

    fn evict_idle(&self, now: Instant) -> Option<State> {
        let mut files = self.files.lock();
        let is_pinned = |entry: &Entry| matches!(entry.state, State::Pinned(_));
        let pinned = files.values_mut().filter(|entry| is_pinned(entry));
        let oldest = pinned.min_by_key(|entry| entry.requested)?;
        let is_idle = now.saturating_duration_since(oldest.requested) >= IDLE_TIME;
        is_idle.then(|| std::mem::replace(&mut oldest.state, State::Counted))
    }

    /// Unpins a file that is about to be removed.
    pub(crate) fn forget(&self, id: u128) {
        let forgotten = self.files.lock().remove(&id);
        drop(forgotten);
    }
}

#[cfg(test)]
mod tests {
    use haul_disk::{Disk, Open, OsDisk};

    use super::*;

    const BYTES: u64 = 64 << 10;

    struct Files {
        _dir: tempfile::TempDir,
        disk: OsDisk,
        pinned: PinnedFiles,
    }

    impl Files {
        fn new(pinned_max: u64) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let disk = OsDisk::open(dir.path()).unwrap();
            Self { _dir: dir, disk, pinned: PinnedFiles::new(pinned_max * BYTES) }
        }

        fn pin(&self, id: u128) -> Result<bool> {
            let map = || {
                let file = self.disk.create(&id.to_string(), Open::default())?;
                file.resize(BYTES)?;
                let bytes = usize::try_from(BYTES).unwrap();
                Ok((Arc::clone(&file), Map::for_reading(file, bytes)?))
            };
            self.pinned.pin(id, BYTES, map, |_file| Ok(()))
        }

        fn request(&self, id: u128, at: Instant) -> bool {
            self.pinned.count(id, BYTES, at)
        }

        fn make_hot(&self, id: u128, at: Instant) {
            assert_eq!([(); 3].map(|()| self.request(id, at)), [false, false, true]);
            assert!(!self.request(id, at), "only one caller pins a file");
        }
    }

    #[test]
    fn hot_file_is_pinned_until_it_is_removed() {
        let (files, now) = (Files::new(2), Instant::now());
        files.make_hot(1, now);
        assert!(files.pinned.get(1).is_none());
        assert!(files.pin(1).unwrap());
        let in_use = files.pinned.get(1).unwrap();
        assert!(!files.request(1, now));
        files.pinned.forget(1);
        assert!(files.pinned.get(1).is_none());
        assert_eq!(files.pinned.bytes(), BYTES, "it is still being sent");
        drop(in_use);
        assert_eq!(files.pinned.bytes(), 0);
    }

    #[test]
    fn requests_long_ago_do_not_count() {
        let (files, now) = (Files::new(2), Instant::now());
        for hours in 0..10 {
            assert!(!files.request(1, now + Duration::from_hours(hours)));
        }
    }

    #[test]
    fn idle_file_is_evicted_and_one_in_use_is_not() {
        let (files, now) = (Files::new(2), Instant::now());
        let ago = now.checked_sub(IDLE_TIME).unwrap();
        files.make_hot(1, ago);
        files.make_hot(2, now);
        files.make_hot(3, now);
        assert!(files.pin(1).unwrap() && files.pin(2).unwrap() && files.pin(3).unwrap());
        assert!(files.pinned.get(1).is_none());
        assert!(files.pinned.get(2).is_some() && files.pinned.get(3).is_some());
        files.make_hot(1, now);
        assert!(!files.pin(1).unwrap(), "the others were requested just now");
        assert_eq!(files.pinned.bytes(), 2 * BYTES);
    }

    #[test]
    fn file_that_fails_its_verification_is_not_pinned() {
        let (files, now) = (Files::new(2), Instant::now());
        files.make_hot(1, now);
        let map = || {
            let file = files.disk.create("1", Open::default())?;
            file.resize(BYTES)?;
            Ok((Arc::clone(&file), Map::for_reading(file, 4096)?))
        };
        let damaged = |_: &dyn File| Err(crate::Error::Invalid { what: "as tested".to_owned() });
        assert!(files.pinned.pin(1, BYTES, map, damaged).is_err());
        assert!(files.pinned.get(1).is_none() && files.pinned.bytes() == 0);
    }

    #[test]
    fn counted_files_are_bounded() {
        let (files, now) = (Files::new(2), Instant::now());
        for id in 0..3 * COUNTED_MAX as u128 {
            files.request(id, now);
        }
        assert_eq!(files.pinned.files.lock().len(), COUNTED_MAX);
        files.request(u128::MAX, now + IDLE_TIME);
        assert_eq!(files.pinned.files.lock().len(), 1);
    }
}
