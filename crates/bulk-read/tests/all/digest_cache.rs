//! Tests which digests the cache returns, and which it does not store.

use std::fs::{self, File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use haul_bulk_read::digest::{Digest, HashKind};
use haul_bulk_read::{DigestCache, DigestForm, Error, FileId, Tree, WalkOptions};
use haul_testing::{disk_dir, eventually};
use tempfile::TempDir;

use crate::walk_ok;

const HASH: HashKind = HashKind::Blake3;
const SAMPLE: [u8; 16] = *b"digest of sample";

/// A directory with one file, and a cache file beside it.
struct Fixture {
    dir: TempDir,
    tree: Tree,
    file: FileId,
}

impl Fixture {
    /// Writes and syncs the file, and waits until its next change gets a later timestamp.
    fn new() -> Self {
        let dir = disk_dir();
        let path = dir.path().join("files/a");
        fs::create_dir(dir.path().join("files")).unwrap();
        write_synced(&path, b"content");
        let changed = since_1970(&fs::metadata(&path).unwrap());
        let later = SystemTime::UNIX_EPOCH + changed + Duration::from_millis(150);
        eventually("the clock advances", || SystemTime::now() > later);
        let (tree, file) = list(dir.path());
        Self { dir, tree, file }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("files/a")
    }

    fn cache_path(&self) -> PathBuf {
        self.dir.path().join("caches/digests")
    }

    fn open(&self) -> DigestCache {
        DigestCache::open(&self.cache_path(), HASH).unwrap()
    }

    fn digest(&self) -> Digest {
        HASH.of(&fs::read(self.path()).unwrap())
    }

    /// Adds both digests of the file to an opened cache, and saves it.
    fn save(&self, mut cache: DigestCache) {
        cache.add(self.file, DigestForm::Bytes, &self.digest());
        cache.add_sample(self.file, DigestForm::Bytes, 7, &SAMPLE);
        cache.save(&self.cache_path(), &self.tree).unwrap();
    }

    /// Saves the digests of the unchanged file.
    fn saved() -> Self {
        let fixture = Self::new();
        let mut cache = fixture.open();
        cache.check_writers(fixture.file, &fixture.tree);
        fixture.save(cache);
        fixture
    }

    /// Returns the cached digest of the content of a listed file.
    fn found(&self, tree: &Tree, file: FileId, form: DigestForm) -> Option<Digest> {
        self.open().digest(&tree.meta(file), form)
    }
}

fn since_1970(meta: &Metadata) -> Duration {
    Duration::new(meta.ctime().unsigned_abs(), u32::try_from(meta.ctime_nsec()).unwrap())
}

fn write_synced(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
    File::open(path).unwrap().sync_all().unwrap();
}

fn list(dir: &Path) -> (Tree, FileId) {
    let tree = walk_ok(&[dir.join("files")], &WalkOptions::default());
    let file = tree.ids().next().unwrap();
    (tree, file)
}

#[test]
fn digests_of_an_unchanged_file_are_found() {
    let fixture = Fixture::saved();
    let (tree, file) = list(fixture.dir.path());
    let cache = fixture.open();
    assert_eq!(cache.hash(), HASH);
    let meta = tree.meta(file);
    assert_eq!(cache.digest(&meta, DigestForm::Bytes), Some(fixture.digest()));
    assert_eq!(cache.sample(&meta, DigestForm::Bytes, 7), Some(SAMPLE));
    assert_eq!(cache.sample(&meta, DigestForm::Bytes, 8), None, "samples of other places");
    assert_eq!(cache.digest(&meta, DigestForm::ZeroRuns), None, "another form");
    assert_eq!(cache.sample(&meta, DigestForm::ZeroRuns, 7), None, "another form");
}

#[test]
fn digest_of_a_changed_file_is_not_found() {
    let fixture = Fixture::saved();
    write_synced(&fixture.path(), b"CONTENT");
    let (tree, file) = list(fixture.dir.path());
    assert_eq!(fixture.found(&tree, file, DigestForm::Bytes), None);
    assert!(fixture.found(&fixture.tree, fixture.file, DigestForm::Bytes).is_some());
}

#[test]
fn both_forms_of_a_digest_are_stored() {
    let fixture = Fixture::saved();
    let zeros = HASH.of(b"without zeros");
    let mut cache = fixture.open();
    cache.check_writers(fixture.file, &fixture.tree);
    cache.add(fixture.file, DigestForm::ZeroRuns, &zeros);
    cache.save(&fixture.cache_path(), &fixture.tree).unwrap();
    let found = |form| fixture.found(&fixture.tree, fixture.file, form);
    assert_eq!(found(DigestForm::ZeroRuns), Some(zeros));
    assert_eq!(found(DigestForm::Bytes), Some(fixture.digest()), "stored before");
}

#[test]
fn digest_of_a_file_with_a_writer_is_not_stored() {
    let fixture = Fixture::new();
    let mut cache = fixture.open();
    let writer = File::options().write(true).open(fixture.path()).unwrap();
    cache.check_writers(fixture.file, &fixture.tree);
    drop(writer);
    // Only the first check counts: the writer may have changed the file since then.
    cache.check_writers(fixture.file, &fixture.tree);
    fixture.save(cache);
    assert!(!fixture.cache_path().exists(), "there is nothing to store");
}

#[test]
fn digest_of_a_file_changed_or_removed_after_the_check_is_not_stored() {
    for is_removed in [false, true] {
        let fixture = Fixture::new();
        let mut cache = fixture.open();
        cache.check_writers(fixture.file, &fixture.tree);
        cache.add(fixture.file, DigestForm::Bytes, &fixture.digest());
        if is_removed {
            fs::remove_file(fixture.path()).unwrap();
        } else {
            write_synced(&fixture.path(), b"changed");
        }
        cache.save(&fixture.cache_path(), &fixture.tree).unwrap();
        assert!(!fixture.cache_path().exists(), "removed: {is_removed}");
    }
}

#[test]
fn unusable_cache_file_is_reported() {
    let fixture = Fixture::saved();
    let path = fixture.cache_path();
    let other_hash = DigestCache::open(&path, HashKind::Sha256).unwrap_err();
    assert!(matches!(&other_hash, Error::CacheHash { path: found } if *found == path));
    let mut bytes = fs::read(&path).unwrap();
    bytes[40] ^= 1;
    fs::write(&path, bytes).unwrap();
    let corrupt = DigestCache::open(&path, HASH).unwrap_err();
    assert_eq!(corrupt.path(), path);
    assert!(corrupt.to_string().contains("checksum mismatch"), "{corrupt}");
    let directory = DigestCache::open(fixture.dir.path(), HASH).unwrap_err();
    assert!(matches!(directory, Error::Disk(_)), "{directory}");
}
