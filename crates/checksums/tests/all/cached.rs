//! Tests that digests of unchanged files are taken from the cache, and only these.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which may panic like tests")]

use std::convert::Infallible;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use haul_bulk_read::digest::{Digest, HashKind};
use haul_bulk_read::{DigestCache, Error, ReadOptions, WalkOptions, walk};
use haul_checksums::{Job, hash_cached};
use haul_testing::disk_dir;

use crate::Ignore;

/// Waits until a change would get a later timestamp than the last change of every file, and syncs
/// the files.
fn settle(dir: &Path) {
    let paths = || fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let changed = |path| {
        let meta = fs::metadata(path).unwrap();
        Duration::new(meta.ctime().unsigned_abs(), u32::try_from(meta.ctime_nsec()).unwrap())
    };
    let until =
        SystemTime::UNIX_EPOCH + paths().map(changed).max().unwrap() + Duration::from_millis(150);
    while SystemTime::now() < until {
        std::thread::yield_now();
    }
    paths().for_each(|path| File::open(path).unwrap().sync_all().unwrap());
}

/// Hashes all files; returns the digests in the order of the paths, and the number of files read.
fn digests(dir: &Path, cache: &Path, kind: HashKind) -> (Vec<Digest>, u64) {
    let mut digests = DigestCache::open(cache, kind).unwrap();
    let walk_options = WalkOptions { sort: true, ..WalkOptions::default() };
    let tree = walk(&[dir.to_path_buf()], &walk_options, &Ignore);
    let jobs: Vec<_> = tree.ids().map(|file| Job { file, kind }).collect();
    let mut found = Vec::new();
    let report = |index, outcome: Result<Digest, Error>| {
        assert_eq!(index, found.len(), "in order");
        found.push(outcome.unwrap());
        Ok::<(), Infallible>(())
    };
    let options = ReadOptions::default();
    let stats = hash_cached(&tree, &jobs, &mut digests, &options, &|_, _| {}, report);
    let Ok(stats) = stats;
    digests.save(cache, &tree).unwrap();
    let expected: Vec<_> =
        tree.ids().map(|id| kind.of(&fs::read(tree.path(id)).unwrap())).collect();
    assert_eq!(found, expected);
    (found, stats.requests)
}

#[test]
fn unchanged_files_are_not_read_again() {
    let (dir, caches) = (disk_dir(), disk_dir());
    let cache = caches.path().join("digests");
    for (number, bytes) in (0..).zip([0, 1, 5000, 70_000]) {
        fs::write(dir.path().join(format!("{number}")), vec![number; bytes]).unwrap();
    }
    settle(dir.path());
    let (first, read) = digests(dir.path(), &cache, HashKind::Sha256);
    assert_eq!(read, 4);
    assert_eq!(digests(dir.path(), &cache, HashKind::Sha256), (first, 0));

    // A change with a restored mtime is detected by the ctime.
    let file = File::options().write(true).open(dir.path().join("2")).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    file.write_all_at(&[9], 100).unwrap();
    file.set_modified(modified).unwrap();
    assert_eq!(digests(dir.path(), &cache, HashKind::Sha256).1, 1);
    // The file is open for writing: its digest is not stored.
    settle(dir.path());
    assert_eq!(digests(dir.path(), &cache, HashKind::Sha256).1, 1);
    drop(file);
    assert_eq!(digests(dir.path(), &cache, HashKind::Sha256).1, 1);
    assert_eq!(digests(dir.path(), &cache, HashKind::Sha256).1, 0);
}

#[test]
fn cache_of_another_hash_function_is_refused() {
    let (dir, caches) = (disk_dir(), disk_dir());
    let cache = caches.path().join("digests");
    fs::write(dir.path().join("file"), "x").unwrap();
    settle(dir.path());
    digests(dir.path(), &cache, HashKind::Sha256);
    let error = DigestCache::open(&cache, HashKind::Blake3).unwrap_err();
    assert!(matches!(error, Error::CacheHash { .. }), "{error}");
    fs::write(&cache, "something else entirely, and long").unwrap();
    let error = DigestCache::open(&cache, HashKind::Blake3).unwrap_err();
    assert!(matches!(error, Error::Cache { .. }), "{error}");
}
