//! Objects of volumes that are locked in the page cache, on a disk that they help to fill.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use haul_file_store::{Error, LockedObject, Options, Store};
use haul_testing::{LoopImage, disk_dir, memory_lock};

use crate::{BUCKET, flip, get, put, random_bytes, small, try_put};

const BYTES: usize = 200_000;

fn options() -> Options {
    Options {
        volume_bytes: 4 << 20,
        big_object_bytes: 1 << 20,
        locked_bytes_max: 64 << 20,
        ..small()
    }
}

fn key(number: u64) -> String {
    format!("{number:04}")
}

/// Reads an object, so that it is in the page cache, and locks it if the store can.
fn lock(store: &Store, key: &str) -> Option<Arc<LockedObject>> {
    store.get(BUCKET, key).ok()?;
    let location = store.location(BUCKET, key)?;
    let object = store.get_locked_at(BUCKET, key, location, 0..=u64::MAX)?;
    Some(Arc::clone(object.locked().unwrap()))
}

/// Stores objects with these numbers, and compacts whenever the disk is full, until that frees no
/// space. Returns how many it has stored.
fn fill(store: &Store, seed: u64, locked: &mut Vec<Arc<LockedObject>>) -> u64 {
    let (mut number, mut attempts) = (0, 0);
    while attempts < 5 && number < 1000 {
        match try_put(store, &key(number), &random_bytes(seed + number, BYTES)) {
            Ok(_) => (number, attempts) = (number + 1, 0),
            Err(Error::Full { .. }) => {
                // The disk may be full for compaction, too.
                drop(store.compact());
                locked.retain(|object| !object.is_volume_removed());
                attempts += 1;
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    number
}

#[test]
fn full_disk_has_its_space_again_when_removed_objects_are_dropped() {
    let Some(_lock) = memory_lock(64 << 20) else { return };
    let Some(image) = LoopImage::new("ext4", 64 << 20) else { return };
    let (store, _) = Store::open(image.mount(), options()).unwrap();
    store.create_bucket(BUCKET).unwrap();
    let mut locked = Vec::new();
    let first = fill(&store, 0, &mut locked);
    assert!(first > 100, "{first}");
    for round in 1..4 {
        locked.extend((0..first).filter_map(|number| lock(&store, &key(number))));
        assert!(locked.len() > 50, "{}", locked.len());
        let removals = store.locked_removals();
        for number in 0..first {
            store.delete(BUCKET, &key(number)).ok();
        }
        // All removed volumes are still held.
        drop(store.compact());
        assert!(store.locked_removals() > removals);
        assert!(locked.iter().any(|object| object.is_volume_removed()));
        let again = fill(&store, round * 1000, &mut locked);
        assert!(again * 10 > first * 8, "round {round}: {again} after {first}");
        for number in 0..again {
            let expected = random_bytes(round * 1000 + number, BYTES);
            assert!(get(&store, &key(number)) == expected, "round {round}: {number}");
        }
    }
    drop(locked);
    store.close().unwrap();
    drop(Store::open(image.mount(), options()).unwrap());
}

#[test]
fn object_is_locked_only_as_it_was_stored_and_within_the_limits() {
    let Some(_lock) = memory_lock(64 << 20) else { return };
    let dir = disk_dir();
    let (store, _) = Store::open(dir.path(), options()).unwrap();
    store.create_bucket(BUCKET).unwrap();
    let bytes = random_bytes(7, BYTES);
    put(&store, "whole", &bytes);
    put(&store, "short", &random_bytes(8, 60_000));
    put(&store, "damaged", &random_bytes(9, BYTES));
    for number in 0..40 {
        put(&store, &key(number), &random_bytes(number, BYTES));
    }
    let whole = lock(&store, "whole").unwrap();
    assert_eq!((whole.bytes(), store.stats().locked_bytes), (BYTES as u64, BYTES as u64));
    assert!(lock(&store, "short").is_none(), "it has no checksums of blocks");
    let location = store.location(BUCKET, "whole").unwrap();
    for lengths in [0..=199_999, 200_001..=u64::MAX] {
        assert!(store.get_locked_at(BUCKET, "whole", location, lengths).is_none());
    }
    assert!(store.get_locked_at(BUCKET, "short", location, 0..=u64::MAX).is_none());
    let last = store.location(BUCKET, &key(39)).unwrap();
    assert!(store.get(BUCKET, &key(39)).is_ok());
    assert!(store.get_locked_at(BUCKET, &key(39), last, 0..=u64::MAX).is_none(), "near the end");
    let damaged = store.location(BUCKET, "damaged").unwrap();
    let intact = lock(&store, "damaged").unwrap();
    let descriptor = format!("/proc/self/fd/{}", intact.as_fd().as_raw_fd());
    let (volume, at) = (std::fs::read_link(descriptor).unwrap(), intact.offset());
    drop(intact);
    flip(&volume, at + 100_000);
    assert!(store.get_locked_at(BUCKET, "damaged", damaged, 0..=u64::MAX).is_none());
    assert_eq!(store.stats().locked_bytes, BYTES as u64);
    drop(whole);
    assert_eq!(store.stats().locked_bytes, 0);
}
