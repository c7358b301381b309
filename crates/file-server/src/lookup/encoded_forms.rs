//! Remembers which files of a directory have encoded forms, so that a lookup need not search for
//! those of its file.
//!
//! Each file has three names at which an encoded form may be, and most directories contain none of
//! them. To search for three names costs more than to open the file, and the kernel keeps an entry
//! in memory for each. A directory in which many lookups searched is therefore read once. The result
//! is valid until a name is added to the directory or removed from it, which changes its time of
//! modification.

use std::hash::{BuildHasher, RandomState};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use rustix::fs::{self, Dir, Stat};
use rustix::io::Errno;

use crate::file::coding::Coding;
use crate::file::description::Version;

/// The memory of what is known about all directories, enough for about 16,000 without forms.
const BYTES_MAX: u64 = 4 << 20;

/// The memory of an entry beside the hashes of its names: the maps of the cache and the allocator.
const OVERHEAD_BYTES: usize = 256;

/// The expected number of directories. Small, so that the parts of the cache, which are locked
/// separately, have room for a directory with the most forms.
const DIRECTORIES_EXPECTED: usize = 256;

/// The most files with encoded forms that are remembered of one directory. If it has more, lookups
/// search.
const NAMES_MAX: usize = 16 << 10;

/// A directory is read after one search for each of these bytes of its length. To read an entry of
/// about 32 bytes takes less than a 64th of the time of a search, so that reading in vain at most
/// doubles the time.
const BYTES_PER_SEARCH: u64 = 2048;

/// The number of searches after which the length of a directory is considered first.
const SEARCHES_MIN: u32 = 64;

/// The most directories that wait to be read.
const DUE_MAX: usize = 64;

/// The time since the last change of a directory after which a further change has another time of
/// modification on every file system: the times of FAT are multiples of 2 s.
const SETTLED_AFTER: Duration = Duration::from_secs(3);

/// What is known about a directory.
#[derive(Debug)]
enum Directory {
    /// The number of lookups that searched in it.
    Searched(AtomicU32),
    Read(Arc<Forms>),
}

/// The files of a directory that have encoded forms.
#[derive(Debug)]
pub(crate) struct Forms {
    /// The version of the directory, which changes with its names.
    version: Version,
    /// The hashes of the names of the files, in order.
    names: Box<[u64]>,
    /// The time at which the directory had the version, in milliseconds of the server.
    checked_ms: AtomicU64,
}

#[derive(Debug, Clone)]
struct ByBytes;

impl Weighter<Box<[u8]>, Arc<Directory>> for ByBytes {
    fn weight(&self, path: &Box<[u8]>, directory: &Arc<Directory>) -> u64 {
        let names = match &**directory {
            Directory::Searched(_) => 0,
            Directory::Read(forms) => forms.names.len(),
        };
        (path.len() + names * size_of::<u64>() + OVERHEAD_BYTES) as u64
    }
}

/// What is known about all directories, by their paths below the root.
#[derive(Debug)]
pub(crate) struct EncodedForms {
    directories: Cache<Box<[u8]>, Arc<Directory>, ByBytes>,
    /// Directories to be read.
    due: Mutex<Vec<Box<[u8]>>>,
    hasher: RandomState,
    valid_ms: u64,
    settled_after: Duration,
}

impl EncodedForms {
    /// `valid_ms` is the time for which a directory is not checked again.
    pub(crate) fn new(valid_ms: u64) -> Self {
        Self {
            directories: Cache::with_weighter(DIRECTORIES_EXPECTED, BYTES_MAX, ByBytes),
            due: Mutex::default(),
            hasher: RandomState::new(),
            valid_ms,
            settled_after: SETTLED_AFTER,
        }
    }

    /// Returns the forms of a directory, if they are known.
    pub(crate) fn get(&self, dir: &[u8]) -> Option<Arc<Forms>> {
        match &*self.directories.get(dir)? {
            Directory::Read(forms) => Some(Arc::clone(forms)),
            Directory::Searched(_) => None,
        }
    }

    /// Counts a search for the forms of a file in a directory whose forms are not known.
    pub(crate) fn count_search(&self, dir: &[u8]) {
        let Some(directory) = self.directories.get(dir) else {
            let directory = Arc::new(Directory::Searched(AtomicU32::new(1)));
            return self.directories.insert(dir.into(), directory);
        };
        if let Directory::Searched(count) = &*directory {
            let count = count.fetch_add(1, Relaxed).wrapping_add(1);
            // More and more rarely, because the directory may be too long, or change often.
            if count >= SEARCHES_MIN && count.is_power_of_two() {
                let mut due = self.due.lock();
                if due.len() < DUE_MAX {
                    due.push(dir.into());
                }
            }
        }
    }

    /// Returns `true` if the directory was checked lately.
    pub(crate) fn are_fresh(&self, forms: &Forms, now_ms: u64) -> bool {
        now_ms < forms.checked_ms.load(Relaxed).saturating_add(self.valid_ms)
    }

    /// Compares the forms with the version of their directory at `now_ms`; returns `false` if they
    /// may have changed, and forgets them.
    pub(crate) fn confirm(&self, dir: &[u8], forms: &Forms, version: Version, now_ms: u64) -> bool {
        if forms.version == version {
            forms.checked_ms.fetch_max(now_ms, Relaxed);
            return true;
        }
        let is_other = |known: &Forms| known.version != version;
        self.directories.remove_if(dir, |known| match &**known {
            Directory::Read(known) => is_other(known),
            Directory::Searched(_) => false,
        });
        false
    }

    /// Returns `false` if the file of this name has no encoded form.
    pub(crate) fn may_include(&self, forms: &Forms, name: &[u8]) -> bool {
        !forms.names.is_empty() && forms.names.binary_search(&self.hasher.hash_one(name)).is_ok()
    }

    /// Returns a directory in which many lookups searched, to be read.
    pub(crate) fn take_due(&self) -> Option<Box<[u8]>> {
        self.due.lock().pop()
    }

    /// Reads a directory, if it is short enough for the number of searches, and has not changed
    /// lately.
    ///
    /// # Errors
    /// If it cannot be read; lookups then search.
    pub(crate) fn read(&self, dir: Box<[u8]>, fd: OwnedFd, now_ms: u64) -> Result<(), Errno> {
        let before = fs::fstat(&fd)?;
        let searches = match self.directories.get(&*dir).as_deref() {
            Some(Directory::Searched(count)) => u64::from(count.load(Relaxed)),
            Some(Directory::Read(_)) | None => return Ok(()),
        };
        let length = u64::try_from(before.st_size).unwrap_or(u64::MAX);
        if length / BYTES_PER_SEARCH > searches || !self.is_settled(&before) {
            return Ok(());
        }
        let mut entries = Dir::new(fd)?;
        let mut names = Vec::new();
        while let Some(entry) = entries.read() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            let stem = |coding: Coding| name.strip_suffix(coding.suffix().as_bytes());
            if let Some(stem) = Coding::ALL.into_iter().find_map(stem) {
                names.push(self.hasher.hash_one(stem));
            }
            if names.len() > NAMES_MAX {
                return Ok(());
            }
        }
        let version = Version::of(&before);
        // A name that was added meanwhile may not have been read.
        if Version::of(&fs::fstat(entries.fd()?)?) == version {
            names.sort_unstable();
            let forms = Forms { version, names: names.into(), checked_ms: AtomicU64::new(now_ms) };
            self.directories.insert(dir, Arc::new(Directory::Read(Arc::new(forms))));
        }
        Ok(())
    }

    /// Returns `true` if a change of the directory from now on changes its version.
    fn is_settled(&self, stat: &Stat) -> bool {
        let changed_s = stat.st_mtime.max(stat.st_ctime);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let settled_s = now.saturating_sub(self.settled_after).as_secs();
        i64::try_from(settled_s).is_ok_and(|settled_s| changed_s <= settled_s)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Returns forms of directories that count as settled at once.
    fn forms() -> EncodedForms {
        EncodedForms { settled_after: Duration::ZERO, ..EncodedForms::new(1000) }
    }

    fn open(path: &Path) -> (OwnedFd, Version) {
        let fd = OwnedFd::from(std::fs::File::open(path).unwrap());
        let version = Version::of(&fs::fstat(&fd).unwrap());
        (fd, version)
    }

    /// Searches until the directory is due, and reads it.
    fn read(all: &EncodedForms, path: &Path) {
        (0..SEARCHES_MIN).for_each(|_| all.count_search(b"d"));
        let due = all.take_due().unwrap();
        assert_eq!(&*due, b"d");
        all.read(due, open(path).0, 0).unwrap();
    }

    #[test]
    fn forms_are_known_after_many_searches_until_the_directory_changes() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "a.gz", "b.txt", "b.txt.br", "c.zst", "d.gzip", "e"] {
            std::fs::write(dir.path().join(name), name).unwrap();
        }
        let all = forms();
        read(&all, dir.path());
        let known = all.get(b"d").unwrap();
        let with_form = |name: &&str| all.may_include(&known, name.as_bytes());
        let names = ["a", "a.gz", "b", "b.txt", "c", "d", "e", "none"];
        assert_eq!(names.into_iter().filter(with_form).collect::<Vec<_>>(), ["a", "b.txt", "c"]);
        assert!(all.are_fresh(&known, 999) && !all.are_fresh(&known, 1000));
        assert!(all.confirm(b"d", &known, open(dir.path()).1, 1000));
        assert!(all.are_fresh(&known, 1999));
        std::fs::write(dir.path().join("e.gz"), "e").unwrap();
        assert!(!all.confirm(b"d", &known, open(dir.path()).1, 2000));
        assert!(all.get(b"d").is_none(), "the forms are forgotten");
    }

    #[test]
    fn directory_that_changed_lately_or_is_long_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let all = EncodedForms::new(1000);
        read(&all, dir.path());
        assert!(all.get(b"d").is_none(), "it may change again within the same time stamp");
        for name in 0..5000 {
            std::fs::write(dir.path().join(format!("{name:0200}")), "").unwrap();
        }
        let length = std::fs::metadata(dir.path()).unwrap().len();
        let searches = u32::try_from(length / BYTES_PER_SEARCH).unwrap();
        if searches < 2 * SEARCHES_MIN {
            return haul_testing::skip("the length of a directory does not tell its names");
        }
        let all = forms();
        read(&all, dir.path());
        assert!(all.get(b"d").is_none(), "a few searches cost less than to read it");
        (SEARCHES_MIN..2 * searches).for_each(|_| all.count_search(b"d"));
        all.read(all.take_due().unwrap(), open(dir.path()).0, 0).unwrap();
        assert!(all.get(b"d").is_some());
    }

    #[test]
    fn memory_of_forms_is_limited() {
        let dir = tempfile::tempdir().unwrap();
        for name in 0..=NAMES_MAX {
            std::fs::write(dir.path().join(format!("{name}.gz")), "").unwrap();
        }
        let all = forms();
        (0..200 * SEARCHES_MIN).for_each(|_| all.count_search(b"d"));
        while let Some(due) = all.take_due() {
            all.read(due, open(dir.path()).0, 0).unwrap();
        }
        assert!(all.get(b"d").is_none(), "it has too many forms");
        std::fs::remove_file(dir.path().join("0.gz")).unwrap();
        for dir_number in 0..200_u32 {
            let path = dir_number.to_le_bytes();
            (0..1024).for_each(|_| all.count_search(&path));
            while let Some(due) = all.take_due() {
                all.read(due, open(dir.path()).0, 0).unwrap();
            }
            assert!(all.directories.weight() <= BYTES_MAX);
        }
        assert!(all.get(&199_u32.to_le_bytes()).is_some(), "the most forms fit");
        for dir_number in 0..100_000_u32 {
            (0..SEARCHES_MIN).for_each(|_| all.count_search(&dir_number.to_be_bytes()));
        }
        assert!(all.directories.weight() <= BYTES_MAX && all.due.lock().len() <= DUE_MAX);
    }
}
