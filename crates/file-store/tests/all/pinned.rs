//! Big objects that are requested often, locked in the page cache.

use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use haul_file_store::{Attributes, Error, Object, Options, PinnedFile, Precondition, Store};

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

#[test]
fn object_in_parts_is_pinned_as_far_as_there_is_room() {
    let dir = disk_dir();
    let store = open(dir.path(), 13 << 20);
    let upload = store.start_upload(BUCKET, "key", &Attributes::new()).unwrap();
    let bytes = random_bytes(2, 16 << 20);
    let parts = [(1, &bytes[..6 << 20]), (2, &bytes[6 << 20..11 << 20]), (3, &bytes[11 << 20..])];
    let parts = parts.map(|(number, bytes)| put_part(&store, "key", &upload, number, bytes));
    store
        .complete_upload(BUCKET, "key", &upload, &parts, &Attributes::new(), &Precondition::None)
        .unwrap();
    let object = make_hot(&store, "key");
    assert_eq!(object.pin().unwrap(), 11 << 20);
    assert!(object.pinned((11 << 20) - 1).is_some() && object.pinned(11 << 20).is_none());
    assert_eq!(object.pinned(1).unwrap().bytes, (6 << 20) - 1);
    let last = object.pinned(7 << 20).unwrap();
    assert_eq!((last.offset, last.bytes), (1 << 20, 4 << 20));
}

#[test]
fn damaged_object_is_not_pinned() {
    let dir = disk_dir();
    let store = open(dir.path(), 4 << 20);
    put(&store, "key", &random_bytes(3, BYTES));
    let object = make_hot(&store, "key");
    flip(&dir.path().join("objects").join(&big_files(dir.path())[0]), 1_234_567);
    let damaged = object.pin().unwrap_err();
    let Error::Damaged { offset, .. } = damaged else { panic!("{damaged}") };
    assert_eq!(offset, 1_234_567 / 131_072 * 131_072);
    assert!(object.pinned(0).is_none() && store.stats().pinned_bytes == 0);
    assert_eq!(store.stats().damaged_places, 1);
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
    let upload = store.start_upload(BUCKET, "key", &Attributes::new()).unwrap();
    let bytes = random_bytes(5, 64 << 10);
    let parts: Vec<_> =
        (1..=257).map(|number| put_part(&store, "key", &upload, number, &bytes)).collect();
    let none = (Attributes::new(), Precondition::None);
    store.complete_upload(BUCKET, "key", &upload, &parts, &none.0, &none.1).unwrap();
    assert!((0..5).all(|_| !store.get(BUCKET, "key").unwrap().count_request()));
}
