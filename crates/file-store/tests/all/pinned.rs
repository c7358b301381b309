//! Big objects that are requested often, locked in the page cache.

use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use haul_file_store::{Attributes, Error, Object, Options, PinnedFile, Precondition, Store};

use haul_testing::memory_lock;

use crate::{BUCKET, big_files, content, disk_dir, flip, put, put_part, random_bytes, small};

const BYTES: usize = 3_000_001;

fn open(dir: &Path, pinned_bytes_max: u64) -> Store {
    let options = Options { pinned_bytes_max, ..small() };
    let (store, _) = Store::open(dir, options).unwrap();
    store.create_bucket(BUCKET).ok();
    store
}

/// Opens an object as often as it takes until it should be pinned.
fn make_hot(store: &Store, key: &str) -> Object {
    for _ in 0..2 {
        assert!(!store.get(BUCKET, key).unwrap().count_request());
    }
    let object = store.get(BUCKET, key).unwrap();
    assert!(object.count_request() && !object.count_request());
    object
}

/// Reads all of an object from its pinned ranges; `None` if a part is not pinned.
fn pinned_content(object: &Object) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < object.info.bytes {
        let range = object.pinned(bytes.len() as u64)?;
        bytes.extend(read(&range.file, range.offset, range.bytes));
    }
    assert!(object.pinned(object.info.bytes).is_none());
    Some(bytes)
}

fn read(file: &PinnedFile, offset: u64, bytes: u64) -> Vec<u8> {
    let mut buffer = vec![0; usize::try_from(bytes).unwrap()];
    let file = std::fs::File::from(file.as_fd().try_clone_to_owned().unwrap());
    file.read_exact_at(&mut buffer, offset).unwrap();
    buffer
}

#[test]
fn hot_object_is_pinned_and_its_removal_frees_memory() {
    let Some(_lock) = memory_lock(4 << 20) else { return };
    let dir = disk_dir();
    let store = open(dir.path(), 4 << 20);
    let bytes = random_bytes(1, BYTES);
    put(&store, "key", &bytes);
    let object = make_hot(&store, "key");
    assert!(object.pinned(0).is_none());
    assert_eq!(object.pin().unwrap(), BYTES as u64);
    assert_eq!(object.pin().unwrap(), 0, "it is pinned");
    assert!(pinned_content(&object).unwrap() == bytes && content(&object).unwrap() == bytes);
    let range = object.pinned(1_000_000).unwrap();
    assert_eq!((range.offset, range.bytes), (1_000_000, 2_000_001));
    assert_eq!(store.stats().pinned_bytes, BYTES as u64);

    put(&store, "key", b"another");
    assert!(pinned_content(&object).unwrap() == bytes, "a reader of the old version is left");
    drop(object);
    assert_eq!((store.stats().pinned_bytes, big_files(dir.path()).len()), (BYTES as u64, 0));
    drop(range);
    assert_eq!(store.stats().pinned_bytes, 0);
}

/// Stores an object in parts of these lengths.
fn put_parts(store: &Store, key: &str, bytes: &[u8], lengths: &[usize]) {
    let upload = store.start_upload(BUCKET, key, &Attributes::new()).unwrap();
    let (mut parts, mut rest) = (Vec::new(), bytes);
    for (number, length) in (1..).zip(lengths) {
        let (part, after) = rest.split_at(*length);
        parts.push(put_part(store, key, &upload, number, part));
        rest = after;
    }
    let (none, always) = (Attributes::new(), Precondition::None);
    store.complete_upload(BUCKET, key, &upload, &parts, &none, &always).unwrap();
}

#[test]
fn object_in_parts_is_pinned_as_a_whole() {
    let Some(_lock) = memory_lock(16 << 20) else { return };
    let dir = disk_dir();
    let store = open(dir.path(), 16 << 20);
    let bytes = random_bytes(2, 16 << 20);
    put_parts(&store, "key", &bytes, &[6 << 20, 5 << 20, 5 << 20]);
    let object = make_hot(&store, "key");
    assert_eq!(object.pin().unwrap(), 16 << 20);
    assert!(pinned_content(&object).unwrap() == bytes);
    assert_eq!(object.pinned(1).unwrap().bytes, (6 << 20) - 1);
    let second = object.pinned(7 << 20).unwrap();
    assert_eq!((second.offset, second.bytes), (1 << 20, 4 << 20));
}

#[test]
fn object_that_does_not_fit_as_a_whole_is_not_pinned() {
    let Some(_lock) = memory_lock(16 << 20) else { return };
    let dir = disk_dir();
    let store = open(dir.path(), 13 << 20);
    let bytes = random_bytes(2, 16 << 20);
    put_parts(&store, "too long", &bytes, &[6 << 20, 5 << 20, 5 << 20]);
    assert!((0..5).all(|_| !store.get(BUCKET, "too long").unwrap().count_request()));
    put(&store, "first", &bytes[..4 << 20]);
    let first = make_hot(&store, "first");
    assert_eq!(first.pin().unwrap(), 4 << 20);
    put_parts(&store, "second", &bytes[..11 << 20], &[6 << 20, 5 << 20]);
    let second = make_hot(&store, "second");
    assert_eq!(second.pin().unwrap(), 0);
    assert!(second.pinned(0).is_none() && first.pinned(0).is_some());
    assert_eq!(store.stats().pinned_bytes, 4 << 20);
}

#[test]
fn damaged_file_prevents_that_the_other_files_of_its_object_are_pinned() {
    let Some(_lock) = memory_lock(16 << 20) else { return };
    let dir = disk_dir();
    let store = open(dir.path(), 16 << 20);
    put_parts(&store, "key", &random_bytes(2, 15 << 20), &[5 << 20; 3]);
    let object = make_hot(&store, "key");
    let damaged = dir.path().join("objects").join(&big_files(dir.path())[1]);
    flip(&damaged, 1_234_567);
    assert!(matches!(object.pin(), Err(Error::Damaged { file, .. }) if file == damaged));
    assert!((0..3).all(|part| object.pinned(part * (5 << 20)).is_none()));
    assert_eq!(store.stats().pinned_bytes, 0);
    flip(&damaged, 1_234_567);
    assert_eq!(make_hot(&store, "key").pin().unwrap(), 15 << 20);
}

#[test]
fn damaged_object_is_not_pinned() {
    let Some(_lock) = memory_lock(4 << 20) else { return };
    let dir = disk_dir();
    let store = open(dir.path(), 4 << 20);
    put(&store, "key", &random_bytes(3, BYTES));
    let object = make_hot(&store, "key");
    flip(&dir.path().join("objects").join(&big_files(dir.path())[0]), 1_234_567);
    let damaged = object.pin().unwrap_err();
    let Error::Damaged { offset, .. } = damaged else { panic!("{damaged}") };
    assert_eq!(offset, 1_234_567 / 131_072 * 131_072);
    assert!(object.pinned(0).is_none() && store.stats().pinned_bytes == 0);
    assert_eq!(store.stats().damaged_locations, 1);
}

#[test]
fn nothing_is_pinned_without_memory_for_it() {
    let dir = disk_dir();
    let store = open(dir.path(), 1 << 20);
    put(&store, "big", &random_bytes(4, BYTES));
    put(&store, "small", b"bytes");
    for key in ["big", "small"] {
        let object = store.get(BUCKET, key).unwrap();
        assert!((0..10).all(|_| !object.count_request()), "{key}");
        assert_eq!(object.pin().unwrap(), 0);
        assert!(object.pinned(0).is_none());
    }
}

#[test]
fn object_of_very_many_parts_is_not_counted() {
    let dir = disk_dir();
    let store = open(dir.path(), 64 << 20);
    put_parts(&store, "key", &random_bytes(5, 257 << 16), &[64 << 10; 257]);
    assert!((0..5).all(|_| !store.get(BUCKET, "key").unwrap().count_request()));
}
