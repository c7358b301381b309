//! Frequently requested big objects in memory.
//!
//! Big objects bypass the page cache, so that they do not evict hot data. If a big object is hot
//! itself, its file is read into the page cache, locked there, and verified once. From then on the
//! kernel can send the file without a copy: its pages cannot be evicted, so the kernel sends
//! exactly the verified bytes. The memory for this has a limit.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use haul_disk::{File, Map};
use haul_sync::Mutex;

use crate::error::Result;
use crate::format::FilePart;

/// The number of requests after which a file is pinned.
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
    /// `true` after the kernel refused to lock memory.
    is_refused: AtomicBool,
    /// All locked bytes. An evicted file's bytes count as long as it is being sent.
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
    /// A caller is about to pin the file.
    Due,
    Pinned(Arc<PinnedFile>),
}

/// A file whose content is locked in the page cache, and verified.
#[derive(Debug)]
pub struct PinnedFile {
    file: Arc<dyn File>,
    _pages: Map,
    _reservation: MemoryReservation,
}

impl AsFd for PinnedFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.descriptor().expect("only files with a descriptor can be mapped")
    }
}

/// Memory reserved for pinned files.
#[derive(Debug)]
struct MemoryReservation {
    bytes: u64,
    all: Arc<AtomicU64>,
}

impl MemoryReservation {
    /// Splits off `bytes`, which are then released separately.
    fn split_off(&mut self, bytes: u64) -> Self {
        debug_assert!(bytes <= self.bytes);
        self.bytes -= bytes;
        Self { bytes, all: Arc::clone(&self.all) }
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        let before = self.all.fetch_sub(self.bytes, Relaxed);
        debug_assert!(before >= self.bytes, "more is released than was locked");
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

    /// Returns `true` if an object of `bytes` may be pinned.
    pub(crate) fn can_hold(&self, bytes: u64) -> bool {
        bytes <= self.bytes_max && !self.is_refused.load(Relaxed)
    }

    /// Counts a request for a file. Returns `true` if the caller should pin the file with
    /// [`Self::pin`].
    pub(crate) fn count(&self, id: u128, now: Instant) -> bool {
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

    /// Pins an object's files that are not pinned yet. A response needs all files, so none is
    /// pinned if there is no room for all, or if one fails. `load` maps the file with an index in
    /// `parts`, `verify` verifies its content. Returns the number of bytes pinned.
    ///
    /// # Errors
    /// Memory cannot be locked: then no more files are pinned. An error of `load` or `verify`.
    pub(crate) fn pin(
        &self,
        parts: &[FilePart],
        load: impl Fn(usize) -> Result<(Arc<dyn File>, Map)>,
        verify: impl Fn(usize, &dyn File) -> Result<()>,
    ) -> Result<u64> {
        let mut missing: BTreeMap<u128, (usize, u64)> = BTreeMap::new();
        for (number, part) in parts.iter().enumerate() {
            if self.get(part.id).is_none() {
                missing.insert(part.id, (number, part.bytes));
            }
        }
        let (pinned, failed) = match self.load(&missing, load, verify) {
            Ok(pinned) => (pinned, None),
            Err(error) => (HashMap::new(), Some(error)),
        };
        let is_pinned = !pinned.is_empty();
        // Unlocking many pages takes time: not under the lock.
        drop(self.set_states(missing.keys(), pinned));
        let bytes = missing.values().map(|(_, bytes)| bytes).sum();
        failed.map_or(Ok(if is_pinned { bytes } else { 0 }), Err)
    }

    /// Reads, locks and verifies files. Returns none if there is no room.
    fn load(
        &self,
        missing: &BTreeMap<u128, (usize, u64)>,
        load: impl Fn(usize) -> Result<(Arc<dyn File>, Map)>,
        verify: impl Fn(usize, &dyn File) -> Result<()>,
    ) -> Result<HashMap<u128, Arc<PinnedFile>>> {
        let all = missing.values().map(|(_, bytes)| bytes).sum();
        let mut loaded = HashMap::new();
        let Some(mut room) = self.make_room(all, Instant::now()) else { return Ok(loaded) };
        for (id, (number, bytes)) in missing {
            let (file, pages) = load(*number)?;
            haul_disk::warm(&*file, 0, *bytes)?;
            if let Err(refused) = pages.lock() {
                self.is_refused.store(true, Relaxed);
                return Err(refused.into());
            }
            verify(*number, &*file)?;
            let room = room.split_off(*bytes);
            loaded.insert(*id, Arc::new(PinnedFile { file, _pages: pages, _reservation: room }));
        }
        Ok(loaded)
    }

    /// Ends an attempt to pin files: the files that are not in `pinned` are counted again. Returns
    /// the previous states.
    fn set_states<'a>(
        &self,
        ids: impl Iterator<Item = &'a u128>,
        mut pinned: HashMap<u128, Arc<PinnedFile>>,
    ) -> Vec<State> {
        let mut before = Vec::new();
        let mut files = self.files.lock();
        for id in ids {
            let Some(entry) = files.get_mut(id) else { continue };
            let state = match pinned.remove(id) {
                Some(file) => State::Pinned(file),
                // Another object with this file was pinned meanwhile.
                None if matches!(entry.state, State::Pinned(_)) => continue,
                None => State::Counted,
            };
            entry.requests = 0;
            before.push(std::mem::replace(&mut entry.state, state));
        }
        before
    }

    /// Reserves memory, and evicts idle files to make room for it.
    fn make_room(&self, bytes: u64, now: Instant) -> Option<MemoryReservation> {
        let add = |all: u64| all.checked_add(bytes).filter(|all| *all <= self.bytes_max);
        while self.bytes.fetch_update(Relaxed, Relaxed, add).is_err() {
            // Unlocking many pages takes time: not under the lock.
            drop(self.evict_idle(now)?);
        }
        Some(MemoryReservation { bytes, all: Arc::clone(&self.bytes) })
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

        /// Pins an object that consists of these files.
        fn pin(&self, ids: &[u128]) -> Result<u64> {
            let verify = |_number: usize, _file: &dyn File| Ok(());
            self.pinned.pin(&parts(ids), |number| self.load(ids[number]), verify)
        }

        fn load(&self, id: u128) -> Result<(Arc<dyn File>, Map)> {
            drop(self.disk.remove(&id.to_string()));
            let file = self.disk.create(&id.to_string(), Open::default())?;
            file.resize(BYTES)?;
            let bytes = usize::try_from(BYTES).unwrap();
            Ok((Arc::clone(&file), Map::for_reading(file, bytes)?))
        }

        fn is_pinned(&self, id: u128) -> bool {
            self.pinned.get(id).is_some()
        }

        fn request(&self, id: u128, at: Instant) -> bool {
            self.pinned.count(id, at)
        }

        fn make_hot(&self, id: u128, at: Instant) {
            assert_eq!([(); 3].map(|()| self.request(id, at)), [false, false, true]);
            assert!(!self.request(id, at), "only one caller pins a file");
        }
    }

    fn parts(ids: &[u128]) -> Vec<FilePart> {
        ids.iter().map(|id| FilePart { id: *id, bytes: BYTES }).collect()
    }

    #[test]
    fn hot_file_is_pinned_until_it_is_removed() {
        let (files, now) = (Files::new(2), Instant::now());
        files.make_hot(1, now);
        assert!(files.pinned.get(1).is_none());
        assert_eq!(files.pin(&[1]).unwrap(), BYTES);
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
        assert_eq!([1, 2, 3].map(|id| files.pin(&[id]).unwrap()), [BYTES; 3]);
        assert_eq!([1, 2, 3].map(|id| files.is_pinned(id)), [false, true, true]);
        files.make_hot(1, now);
        assert_eq!(files.pin(&[1]).unwrap(), 0, "the others were requested just now");
        assert_eq!(files.pinned.bytes(), 2 * BYTES);
    }

    #[test]
    fn object_without_room_for_all_of_its_files_is_not_pinned() {
        let (files, now) = (Files::new(2), Instant::now());
        (1..=4).for_each(|id| files.make_hot(id, now));
        assert_eq!(files.pin(&[1]).unwrap(), BYTES);
        assert_eq!(files.pin(&[2, 3]).unwrap(), 0);
        assert_eq!([1, 2, 3].map(|id| files.is_pinned(id)), [true, false, false]);
        assert_eq!(files.pinned.bytes(), BYTES);
        // The file of another object is pinned once, also if it occurs twice.
        assert_eq!(files.pin(&[4, 1, 4]).unwrap(), BYTES);
        assert!(files.is_pinned(1) && files.is_pinned(4));
        assert_eq!(files.pinned.bytes(), 2 * BYTES);
        assert!(files.pinned.can_hold(2 * BYTES) && !files.pinned.can_hold(2 * BYTES + 1));
    }

    #[test]
    fn object_with_a_file_that_fails_is_not_pinned_and_tried_again() {
        let (files, now) = (Files::new(3), Instant::now());
        let all = [1, 2, 3];
        all.iter().for_each(|id| files.make_hot(*id, now));
        let damaged = |number, _: &dyn File| match number {
            1 => Err(crate::Error::Invalid { what: "as tested".to_owned() }),
            _ => Ok(()),
        };
        let load = |number: usize| files.load(all[number]);
        assert!(files.pinned.pin(&parts(&all), load, damaged).is_err());
        assert!(all.iter().all(|id| !files.is_pinned(*id)) && files.pinned.bytes() == 0);
        all.iter().for_each(|id| files.make_hot(*id, now));
        assert_eq!(files.pin(&all).unwrap(), 3 * BYTES);
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
