//! The exact calls of each operation on a disk.

use haul_disk::Op;
use haul_disk_sim::{CALLS, MemoryDisk};

use crate::crash::open_on;
use crate::{BIG, BUCKET, content, list, put, random_bytes};

/// Returns the number of calls of `work` by kind, without kinds that did not occur. Calls of the
/// background threads, for the indexes of volumes and the manifest, are not counted.
fn calls<T>(disk: &MemoryDisk, work: impl FnOnce() -> T) -> Vec<(Op, u64)> {
    let before = disk.recorded_calls().len();
    work();
    let seen = disk.recorded_calls();
    let is_background = |thread: &str| ["store-index", "store-background"].contains(&thread);
    let count = |op: Op| {
        let seen = seen[before..].iter();
        seen.filter(|(seen, thread)| *seen == op && !is_background(thread)).count() as u64
    };
    let counted = CALLS.into_iter().map(|op| (op, count(op)));
    counted.filter(|(_, count)| *count > 0).collect()
}

#[test]
fn each_operation_has_its_exact_number_of_calls() {
    let disk = MemoryDisk::default();
    disk.record_calls();
    let (store, _) = open_on(&disk);
    let batch = [(Op::Write, 1), (Op::Sync, 1)];
    let none: [(Op, u64); 0] = [];
    let calls_of = |work: &dyn Fn()| calls(&disk, work);
    assert_eq!(calls_of(&|| store.create_bucket(BUCKET).unwrap()), batch, "a bucket");
    for bytes in [0, 100, 5000, BIG - 1] {
        let key = bytes.to_string();
        let bytes = random_bytes(1, bytes);
        let write = &|| drop(put(&store, &key, &bytes));
        assert_eq!(calls_of(write), batch, "a small object of {key} bytes");
        assert_eq!(calls_of(write), batch, "the same key again");
        let read = &|| assert!(content(&store.get(BUCKET, &key).unwrap()).unwrap() == bytes);
        assert_eq!(calls_of(read), [(Op::Read, 1)], "reading {key} bytes");
        assert_eq!(calls_of(&|| drop(store.stat(BUCKET, &key).unwrap())), none);
    }
    assert_eq!(calls_of(&|| drop(list(&store, BUCKET))), none, "a listing");
    assert_eq!(calls_of(&|| assert!(store.get(BUCKET, "missing").is_err())), none, "a miss");
    assert_eq!(calls_of(&|| assert!(store.delete(BUCKET, "100").unwrap())), batch, "a deletion");
    assert_eq!(calls_of(&|| assert!(!store.delete(BUCKET, "100").unwrap())), none, "a missing key");
    let keys = ["0", "5000", "65535"];
    assert_eq!(calls_of(&|| drop(store.delete_many(BUCKET, &keys))), batch, "several deletions");

    // A file (its bytes, its checksums and footer, its name) and a needle.
    let big = random_bytes(2, 3 * BIG);
    let made = [
        (Op::Write, 3),
        (Op::Sync, 2),
        (Op::SyncDir, 1),
        (Op::Create, 1),
        (Op::Allocate, 1),
        (Op::Resize, 1),
        (Op::Rename, 1),
    ];
    assert_eq!(calls_of(&|| drop(put(&store, "big", &big))), made, "a big object");
    let read = &|| assert!(content(&store.get(BUCKET, "big").unwrap()).unwrap() == big);
    assert_eq!(calls_of(read), [(Op::Read, 3), (Op::Open, 1)], "reading it");
    store.close().unwrap();
}
