//! Ranges of objects that are stored in volumes.

use std::collections::BTreeMap;
use std::sync::Arc;

use haul_disk::Disk;
use haul_disk_sim::MemoryDisk;
use haul_file_store::{Attributes, Error, Object, Options, Precondition, Store};
use haul_testing::Random;

use crate::{BUCKET, put, random_bytes, small, try_get};

const BLOCK: usize = 64 << 10;

/// Returns options with which objects up to 1 MiB are stored in volumes.
fn options() -> Options {
    Options { big_object_bytes: 1 << 20, ..small() }
}

fn open_on(disk: &MemoryDisk) -> Store {
    Store::open_on(Arc::new(disk.clone()), options()).unwrap().0
}

fn new_store() -> (MemoryDisk, Store) {
    let disk = MemoryDisk::default();
    let store = open_on(&disk);
    store.create_bucket(BUCKET).unwrap();
    (disk, store)
}

fn check_ranges(object: &Object, content: &[u8], ranges: &[(usize, usize)]) {
    for &(from, bytes) in ranges {
        let expected = &content[from.min(content.len())..(from + bytes).min(content.len())];
        let found = object.read(from as u64, bytes).unwrap();
        assert!(found == expected, "{bytes} bytes at {from} of {}", content.len());
    }
}

#[test]
fn every_range_of_an_object_is_read_as_stored() {
    let (_, store) = new_store();
    let mut random = Random(7);
    let attributes = Attributes::from_iter([("name", "v".repeat(9000))]);
    let lengths = [
        0,
        1,
        BLOCK,
        BLOCK + 1,
        2 * BLOCK - 9_100,
        4 * BLOCK - 1,
        4 * BLOCK,
        5 * BLOCK + 17,
        1 << 20,
    ];
    for length in lengths {
        let content = random.bytes(length);
        store.put(BUCKET, "key", &content, &attributes, &Precondition::None).unwrap();
        let object = store.open_object(BUCKET, "key").unwrap();
        assert_eq!(object.info, store.stat(BUCKET, "key").unwrap());
        assert_eq!(object.attributes, attributes, "attributes longer than the first read");
        assert_eq!(object.part_bytes(), [length as u64]);
        let is_whole = length <= 2 * BLOCK || length >= 1 << 20;
        assert_eq!(object.is_in_memory(), is_whole && length < 1 << 20, "{length} bytes");
        if length >= 1 << 20 {
            continue;
        }
        let edges = [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, length / 2, length, length + 1];
        let edge_ranges = edges.iter().flat_map(|from| edges.map(|bytes| (*from, bytes)));
        let at_random = (0..100).map(|_| {
            let [from, bytes] = [(); 2].map(|()| random.below(length as u64 + 9));
            (usize::try_from(from).unwrap(), usize::try_from(bytes).unwrap())
        });
        let ranges: Vec<_> = edge_ranges.chain(at_random).collect();
        check_ranges(&object, &content, &ranges);
        assert!(object.read(0, usize::MAX).unwrap() == content);
        assert!(object.read(u64::MAX, usize::MAX).unwrap().is_empty());
    }
}

#[test]
fn range_reads_the_head_and_its_blocks() {
    let (_, store) = new_store();
    put(&store, "key", &random_bytes(1, 900_000));
    let before = store.stats();
    let object = store.open_object(BUCKET, "key").unwrap();
    object.read(300_000, 100).unwrap();
    object.read(BLOCK as u64 - 1, 2).unwrap();
    let after = store.stats();
    assert_eq!(after.needle_reads - before.needle_reads, 3);
    let bytes = after.needle_read_bytes - before.needle_read_bytes;
    assert_eq!(bytes, 4096 + 3 * BLOCK as u64);
    // The same range in one call.
    let range = store.get_range(BUCKET, "key", 300_000, 100).unwrap();
    assert!(range == random_bytes(1, 900_000)[300_000..300_100]);
    let ranged = store.stats();
    assert_eq!(ranged.needle_reads - after.needle_reads, 2);
    let bytes = ranged.needle_read_bytes - after.needle_read_bytes;
    assert_eq!(bytes, 4096 + BLOCK as u64);
    assert!(store.get_range(BUCKET, "key", 900_000, 1).unwrap().is_empty());
    let absent = store.get_range(BUCKET, "absent", 0, 1);
    assert!(matches!(absent, Err(Error::NoSuchKey { .. })));
}

#[test]
fn damaged_block_fails_only_the_ranges_that_contain_it() {
    let (disk, store) = new_store();
    let content = random_bytes(1, 6 * BLOCK);
    put(&store, "key", &content);
    let name = "volumes/0000000001.segment";
    let start = {
        let mut medium = disk.medium();
        let volume = medium.file(name);
        volume.windows(64).position(|window| *window == content[..64]).unwrap()
    };
    let object = store.open_object(BUCKET, "key").unwrap();
    disk.rot(name, (start + 2 * BLOCK + 5) as u64, 3);
    for (block, at) in (0..6).map(|block| (block, (block * BLOCK) as u64)) {
        let read = object.read(at, BLOCK);
        if block == 2 {
            let Err(Error::Damaged { file, what, .. }) = read else { panic!("{read:?}") };
            assert!(file.ends_with(name) && what.contains("block 2"), "{what}");
        } else {
            assert!(read.unwrap() == content[block * BLOCK..][..BLOCK], "block {block}");
        }
    }
    assert!(matches!(object.read(0, usize::MAX), Err(Error::Damaged { .. })));
    assert_eq!(store.damage()[0].key.as_deref(), Some("key"));
    // Damage of the head is detected when the object is opened.
    disk.rot(name, start as u64 - 1, 3);
    assert!(matches!(store.open_object(BUCKET, "key"), Err(Error::Damaged { .. })));
}

#[test]
fn open_object_stays_readable_after_deletion_and_compaction() {
    let (disk, store) = new_store();
    let content = random_bytes(1, 900_000);
    put(&store, "deleted", &content);
    put(&store, "moved", &content);
    let [deleted, moved] = ["deleted", "moved"].map(|key| store.open_object(BUCKET, key).unwrap());
    assert!(store.delete(BUCKET, "deleted").unwrap());
    let removed = |number: u32| {
        let name = format!("{number:010}.segment");
        !disk.list("volumes").unwrap().contains(&name)
    };
    // Many more volumes are written than there are spare files, so each free file is reused.
    for round in 0..40 {
        put(&store, "filler", &random_bytes(round, 900_000));
        store.compact().unwrap();
    }
    assert!(removed(1) && store.stats().volumes_compacted > 4, "{:?}", store.stats());
    for object in [&deleted, &moved] {
        check_ranges(object, &content, &[(0, 900_000), (500_000, 100), (899_999, 9)]);
    }
    let again = store.open_object(BUCKET, "moved").unwrap();
    assert!(!again.is_in_memory(), "the moved needle has its block checksums");
    check_ranges(&again, &content, &[(0, 900_000), (500_000, 100)]);
    store.close().unwrap();
    check_ranges(&deleted, &content, &[(0, 900_000)]);
}

#[test]
fn copy_has_block_checksums_and_survives_a_reopening() {
    let (disk, store) = new_store();
    let content = random_bytes(1, 700_000);
    put(&store, "key", &content);
    store.copy((BUCKET, "key"), (BUCKET, "copy"), None, &Precondition::None).unwrap();
    store.close().unwrap();
    let store = open_on(&disk);
    for key in ["key", "copy"] {
        let object = store.open_object(BUCKET, key).unwrap();
        assert!(!object.is_in_memory(), "{key}");
        check_ranges(&object, &content, &[(0, 700_000), (BLOCK, 3), (699_000, 5000)]);
        assert!(try_get(&store, key).unwrap() == content);
    }
}

#[test]
fn ranges_read_during_overwrites_and_compaction_are_consistent() {
    let (_, store) = new_store();
    let contents: BTreeMap<u8, Vec<u8>> = (0..4).map(|n| (n, vec![n; 600_000])).collect();
    put(&store, "key", &contents[&0]);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 0..40_u8 {
                put(&store, "key", &contents[&(round % 4)]);
                store.compact().unwrap();
            }
        });
        while !writer.is_finished() {
            let object = store.open_object(BUCKET, "key").unwrap();
            let first = object.read(0, 1).unwrap()[0];
            for from in [100, 300_000, 599_000] {
                assert!(object.read(from, 1000).unwrap().iter().all(|byte| *byte == first));
            }
        }
        writer.join().unwrap();
    });
}
