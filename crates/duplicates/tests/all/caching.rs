//! Digests that are kept from one search to the next.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime};

use haul_bulk_read::digest::HashKind;
use haul_bulk_read::{Kind, ReadOptions};
use haul_duplicates::Options;
use tempfile::TempDir;

use crate::oracle::{Count, files, groups, plant};
use crate::random::Random;
use crate::{Told, disk_dir, paths, search};
use haul_duplicates::Replication;

/// Waits until the clock is past what a change of the files now could have for a time.
fn settle(dir: &Path) {
    let changed = |path| {
        let meta = fs::metadata(path).unwrap();
        Duration::new(meta.ctime().unsigned_abs(), u32::try_from(meta.ctime_nsec()).unwrap())
    };
    let last = files(dir).into_iter().map(changed).max().unwrap_or_default();
    let until = SystemTime::UNIX_EPOCH + last + Duration::from_millis(150);
    while SystemTime::now() < until {
        thread::yield_now();
    }
}

struct Place {
    dir: TempDir,
    caches: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { dir: disk_dir(), caches: disk_dir() }
    }

    fn options(&self) -> Options<'static> {
        Options { cache: Some(self.caches.path().join("new/digests")), ..Options::default() }
    }

    /// Searches, and gives how many bytes were read.
    fn search(&self, options: &Options<'_>) -> (crate::Groups, u64, Vec<String>) {
        let told = Told::default();
        let groups = paths(&search(&[self.dir.path()], options, &told));
        assert_eq!(groups, self.expected());
        (groups, told.bytes(), told.failed())
    }

    fn expected(&self) -> crate::Groups {
        groups(&[self.dir.path()], Replication::Over(1), Count::Files)
    }
}

#[test]
fn a_search_with_kept_digests_finds_the_same() {
    let mut random = Random::from_environment();
    for kind in [Kind::Solid, Kind::Rotating] {
        for hash in [HashKind::Xxh3, HashKind::Blake3] {
            let place = Place::new();
            plant(place.dir.path(), &mut random, 40);
            settle(place.dir.path());
            let read = ReadOptions { kind: Some(kind), ..ReadOptions::default() };
            let options = Options { hash, read, ..place.options() };
            let (_, read, failed) = place.search(&options);
            assert!(read > 0 && failed.is_empty(), "{failed:?}");
            // Of files that parted behind their samples nothing is known to the end.
            assert!(place.search(&options).1 <= read);
            let plain = Options { cache: None, ..options.clone() };
            let groups = |options| search(&[place.dir.path()], options, &Told::default());
            assert_eq!(groups(&options), groups(&plain), "with the same digests");
        }
    }
}

#[test]
fn a_second_search_reads_no_duplicate_again() {
    let place = Place::new();
    for (number, bytes) in (0..).zip([1, 5000, 70_000, 3 << 20]) {
        for copy in 0..3 {
            let path = place.dir.path().join(format!("{number}-{copy}"));
            fs::write(path, vec![number; bytes]).unwrap();
        }
    }
    settle(place.dir.path());
    assert!(place.search(&place.options()).1 > 9 << 20);
    assert_eq!(place.search(&place.options()).1, 0);
    // One more beside those that are known.
    fs::copy(place.dir.path().join("3-0"), place.dir.path().join("new")).unwrap();
    let bytes = place.search(&place.options()).1;
    assert!((3 << 20..4 << 20).contains(&bytes), "{bytes}");
}

#[test]
fn a_change_is_noticed_even_when_the_time_of_modification_is_set_back() {
    let place = Place::new();
    for name in ["a", "b"] {
        fs::write(place.dir.path().join(name), vec![1; 100_000]).unwrap();
    }
    settle(place.dir.path());
    assert_eq!(place.search(&place.options()).0.len(), 1);
    let file = File::options().write(true).open(place.dir.path().join("b")).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    file.write_all_at(&[2], 50_000).unwrap();
    file.set_modified(modified).unwrap();
    assert_eq!(place.search(&place.options()).0.len(), 0);
}

#[test]
fn what_changed_just_before_the_search_is_not_kept() {
    let place = Place::new();
    for name in ["a", "b"] {
        fs::write(place.dir.path().join(name), "x").unwrap();
    }
    // As if the clock of the file system stood still since: the times are in the future.
    for name in ["a", "b"] {
        let file = File::options().write(true).open(place.dir.path().join(name)).unwrap();
        file.set_modified(SystemTime::now() + Duration::from_secs(3600)).unwrap();
    }
    place.search(&place.options());
    assert!(!place.options().cache.unwrap().exists());
}

#[test]
fn a_damaged_file_of_digests_is_told_and_made_anew() {
    let place = Place::new();
    for name in ["a", "b"] {
        fs::write(place.dir.path().join(name), vec![1; 100_000]).unwrap();
    }
    settle(place.dir.path());
    place.search(&place.options());
    let cache = place.options().cache.unwrap();
    let whole = fs::read(&cache).unwrap();
    let mut flipped = whole.clone();
    flipped[50] ^= 1;
    for damaged in
        [&flipped[..], &whole[..whole.len() / 2], b"", b"something else entirely, and long"]
    {
        fs::write(&cache, damaged).unwrap();
        let (_, bytes, failed) = place.search(&place.options());
        assert!(bytes > 0 && failed.len() == 1 && failed[0].contains("made anew"), "{failed:?}");
        assert_eq!(fs::read(&cache).unwrap(), whole);
        assert_eq!(place.search(&place.options()).1, 0);
    }
}
