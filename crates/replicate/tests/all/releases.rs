//! Copies in an object store that released versions wrote, from the archives
//! `tests/fixtures/copy-VERSION.tar.gz`. Every later version must restore them and extend them.

use std::path::Path;
use std::sync::Arc;

use haul_replicate::Remote;
use haul_testing::{disk_dir, files_below, fixtures};

use crate::faulty::FaultyStore;
use crate::log::{names, read, write as write_object};
use crate::store::{Original, content, restored};
use crate::{TestLog, record, records, restore};

/// The number of records of the log.
const RECORDS: u64 = 160;

/// The objects of the store: numbers and lengths.
const OBJECTS: [(usize, usize); 5] = [(1, 10), (2, 3000), (3, 90_000), (4, 200_000), (5, 40)];

fn remote(store: &FaultyStore) -> Remote {
    Remote::new(Arc::new(store.clone()), "copy").unwrap()
}

/// Writes the objects of an object store as files.
fn dump(store: &FaultyStore, dir: &Path) {
    for name in names(store) {
        let file = dir.join(&name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, read(store, &name)).unwrap();
    }
}

/// Returns an object store with the files of a directory.
fn load(dir: &Path) -> FaultyStore {
    let store = FaultyStore::new();
    for file in files_below(dir) {
        let name = file.strip_prefix(dir).unwrap().to_str().unwrap();
        write_object(&store, name, std::fs::read(&file).unwrap());
    }
    store
}

/// Writes the copies of an archive: of a log with several segments, and of a file store.
fn write(dir: &Path) {
    let store = FaultyStore::new();
    let log = TestLog::new();
    let replica = log.follow(&remote(&store)).unwrap();
    for from in [0, RECORDS / 2] {
        log.put_numbers(from..from + RECORDS / 2, 10_000);
        replica.wait().unwrap();
    }
    replica.stop().unwrap();
    dump(&store, &dir.join("log"));

    let store = FaultyStore::new();
    let mut original = Original::new(&remote(&store));
    original.store.create_bucket("bucket").unwrap();
    original.put("deleted", content(0, 500));
    for (number, bytes) in OBJECTS {
        original.put(&number.to_string(), content(number, bytes));
    }
    original.delete("deleted");
    original.replica.wait().unwrap();
    original.replica.stop().unwrap();
    dump(&store, &dir.join("store"));
}

fn check(dir: &Path, version: &str) {
    let store = load(&dir.join("log"));
    let disk = restore(Arc::new(store.clone()));
    let expected = (0..RECORDS).map(|number| record(number, 10_000));
    assert!(records(&disk).into_iter().eq(expected), "{version}: the records differ");
    let log = TestLog::open(disk);
    let replica = log.follow(&remote(&store)).unwrap();
    log.put_numbers(RECORDS..RECORDS + 10, 10_000);
    replica.wait().unwrap();
    replica.stop().unwrap();
    let expected = (0..RECORDS + 10).map(|number| record(number, 10_000));
    let extended = records(&restore(Arc::new(store)));
    assert!(extended.into_iter().eq(expected), "{version}: the records differ");

    let store = load(&dir.join("store"));
    let (objects, _) = restored(Arc::new(store));
    let expected = OBJECTS.map(|(number, bytes)| (number.to_string(), content(number, bytes)));
    assert!(objects.into_iter().eq(expected), "{version}: the objects differ");
}

#[test]
fn copies_of_released_versions_are_restored_and_extended() {
    for (version, dir) in fixtures::release_fixtures(env!("CARGO_MANIFEST_DIR"), "copy") {
        check(dir.path(), &version);
    }
}

#[test]
fn copy_of_this_version_passes_the_test_of_releases() {
    let dir = disk_dir();
    write(dir.path());
    fixtures::save(dir.path(), "copy", env!("CARGO_PKG_VERSION"));
    check(dir.path(), "this version");
}
