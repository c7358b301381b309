//! Tests that a restored log has the records of the original, and what shipping them costs.

use std::sync::Arc;

use haul_append_log::{Lsn, Options};
use haul_disk_sim::MemoryDisk;
use haul_replicate::{Error, Remote, restore_log};

use crate::faulty::FaultyStore;
use crate::{TestLog, log_options, record, records, restore};

#[test]
fn restored_log_has_the_records_of_the_original() {
    let store = FaultyStore::new();
    let remote = Remote::new(Arc::new(store.clone()), "copy").unwrap();
    let original = TestLog::new();
    let replica = original.follow(&remote).unwrap();
    let mut number = 0;
    for (count, bytes) in [(3, 10), (40, 900), (60, 30_000), (1, 60_000), (200, 100), (40, 30_000)]
    {
        original.put_numbers(number..number + count, bytes);
        number += count;
        replica.wait().unwrap();
        assert_eq!(records(&restore(Arc::new(store.clone()))).len() as u64, number);
    }
    original.log.write_watermark().unwrap();
    replica.stop().unwrap();
    assert!(original.log.segments().len() > 3);
    let restored = restore(Arc::new(store));
    let TestLog { log, disk } = original;
    drop(log);
    assert!(records(&restored) == records(&disk), "the records differ");
}

#[test]
fn records_longer_than_a_chunk_are_restored() {
    let store = FaultyStore::new();
    let remote = Remote::new(Arc::new(store.clone()), "copy").unwrap();
    let options = || Options { segment_bytes: 40 << 20, ..log_options() };
    let original = TestLog::open_with(MemoryDisk::default(), options());
    let replica = original.follow(&remote).unwrap();
    // The longest of them is in a chunk that is uploaded in parts, the others are not.
    let lengths = [100, 70_000, 500_000, 100, 34 << 20, 3000, 3 << 20, 2 << 20, 200_000];
    for (number, bytes) in (0..).zip(lengths) {
        original.put_numbers(number..number + 1, bytes);
        if number % 2 == 0 {
            replica.wait().unwrap();
        }
    }
    replica.wait().unwrap();
    replica.stop().unwrap();
    assert_eq!(original.log.segments().len(), 2);
    let restored = records(&restore(Arc::new(store)));
    let expected = (0..).zip(lengths).map(|(number, bytes)| record(number, bytes));
    assert!(restored.into_iter().eq(expected), "the records differ");
}

#[test]
fn restored_log_continues_the_copy_and_fences_the_original() {
    let store = FaultyStore::new();
    let remote = Remote::new(Arc::new(store.clone()), "copy").unwrap();
    let original = TestLog::new();
    original.put(b"one");
    let replica = original.follow(&remote).unwrap();
    replica.wait().unwrap();
    let standby = TestLog::open(restore(Arc::new(store.clone())));
    standby.put(b"of the standby");
    let taken_over = standby.follow(&remote).unwrap();
    taken_over.wait().unwrap();
    original.put(b"of the original");
    let refused = replica.wait().unwrap_err();
    assert!(refused.contains("took over"), "{refused}");
    assert!(matches!(replica.stop(), Err(Error::Stopped { .. })));
    assert!(matches!(original.follow(&remote), Err(Error::Fenced { .. })));
    standby.put(b"more");
    taken_over.wait().unwrap();
    let expected = [&b"one"[..], b"of the standby", b"more"];
    assert_eq!(records(&restore(Arc::new(store))), expected);
}

#[test]
fn small_records_cost_one_request_and_none_without_new_records() {
    let store = FaultyStore::new();
    let remote = Remote::new(Arc::new(store.clone()), "copy").unwrap();
    let log = TestLog::new();
    let replica = log.follow(&remote).unwrap();
    log.put(b"first");
    replica.wait().unwrap();
    let before = remote.requests();
    for number in 1..=5 {
        log.put(&record(number, 100));
        replica.wait().unwrap();
        assert_eq!(remote.requests() - before, number);
    }
    replica.wait().unwrap();
    replica.stop().unwrap();
    assert!(remote.requests() - before <= 5);
}

/// Returns the number of objects with bytes of the first segment.
fn chunks_of_first(store: &FaultyStore) -> usize {
    names(store).iter().filter(|name| name.contains("/0000000001-")).count()
}

#[test]
fn records_are_shipped_in_full_chunks_once() {
    let store = FaultyStore::new();
    let remote = Remote::new(Arc::new(store.clone()), "copy").unwrap();
    let log = TestLog::new();
    let replica = log.follow(&remote).unwrap();
    // The requests of the start are not counted.
    log.put(&record(0, 10));
    replica.wait().unwrap();
    let before = remote.requests();
    // 30 records of 30 KB: 900 KB in chunks of about 64 KiB, and the tail.
    log.put_numbers(0..30, 30_000);
    replica.wait().unwrap();
    let requests = remote.requests() - before;
    assert!((10..=16).contains(&requests), "{requests} requests");
    // The first segment becomes complete, and its chunks stay.
    log.put_numbers(30..60, 30_000);
    for number in 0..20 {
        log.put(&record(number, 10));
        replica.wait().unwrap();
    }
    assert!((10..=16).contains(&chunks_of_first(&store)), "{:?}", names(&store));
    replica.stop().unwrap();
    assert!((10..=16).contains(&chunks_of_first(&store)), "{:?}", names(&store));
    let sent = remote.sent_bytes();
    assert!(sent < 60 * 30_000 + 200_000, "{sent} bytes");
    let expected = records_of(&log);
    assert!(records(&restore(Arc::new(store))) == expected);
}

#[test]
fn small_chunks_are_merged_when_the_segment_is_complete() {
    let store = FaultyStore::new();
    let remote = Remote::new(Arc::new(store.clone()), "copy").unwrap();
    let log = TestLog::new();
    let replica = log.follow(&remote).unwrap();
    for number in 0..60 {
        log.put(&record(number, 20_000));
        replica.wait().unwrap();
    }
    // Each request starts a round, which publishes a finished merge.
    let merged = (0..1000).any(|number| {
        log.put(&record(number, 10));
        replica.wait().unwrap();
        chunks_of_first(&store) == 1
    });
    assert!(merged, "{:?}", names(&store));
    let expected = records_of(&log);
    assert!(records(&restore(Arc::new(store))) == expected);
}

#[test]
fn segments_that_the_log_removed_are_removed_from_the_copy() {
    let store = FaultyStore::new();
    let remote = Remote::new(Arc::new(store.clone()), "copy").unwrap();
    let log = TestLog::new();
    let replica = log.follow(&remote).unwrap();
    log.put_numbers(0..100, 30_000);
    replica.wait().unwrap();
    assert!(log.log.segments().len() > 2);
    log.log.truncate_front(Lsn::new(3, 0)).unwrap();
    log.put(b"after");
    replica.wait().unwrap();
    replica.stop().unwrap();
    let names = names(&store);
    assert!(names.iter().all(|name| !name.contains("/0000000001-")), "{names:?}");
    let expected = records_of(&log);
    assert!(records(&restore(Arc::new(store))) == expected);
}

#[test]
fn segments_removed_before_they_were_shipped_are_not_missed() {
    let store = FaultyStore::new();
    let remote = Remote::new(Arc::new(store.clone()), "copy").unwrap();
    let log = TestLog::new();
    log.put_numbers(0..100, 30_000);
    log.log.truncate_front(Lsn::new(3, 0)).unwrap();
    let replica = log.follow(&remote).unwrap();
    replica.wait().unwrap();
    let expected = records_of(&log);
    assert!(records(&restore(Arc::new(store))) == expected);
}

#[test]
fn damaged_missing_and_foreign_objects_are_reported() {
    let store = FaultyStore::new();
    let remote = Remote::new(Arc::new(store.clone()), "copy").unwrap();
    let empty = restore_log(&remote, &empty_disk());
    assert!(matches!(empty, Err(Error::NoCopy { .. })), "{empty:?}");
    let log = TestLog::new();
    log.put_numbers(0..10, 30_000);
    log.follow(&remote).unwrap().stop().unwrap();
    let chunk = names(&store).into_iter().find(|name| name.contains("/log/")).unwrap();
    for (name, what) in [(&chunk[..], "checksum"), ("copy/manifest", "manifest")] {
        let before = read(&store, name);
        let mut bytes = before.clone();
        bytes[20] ^= 1;
        write(&store, name, bytes);
        let damaged = restore_log(&remote, &empty_disk()).unwrap_err();
        assert!(matches!(damaged, Error::Damaged { .. }), "{damaged:?}");
        assert!(damaged.to_string().contains(what), "{damaged}");
        write(&store, name, before);
    }
    restore_log(&remote, &empty_disk()).unwrap();
    let full = restore_log(&remote, &(Arc::new(log.disk.clone()) as _));
    assert!(matches!(full, Err(Error::Invalid(_))), "{full:?}");
    block_on(object_store::ObjectStoreExt::delete(&store, &chunk.as_str().into())).unwrap();
    let missing = restore_log(&remote, &empty_disk()).unwrap_err();
    assert!(missing.to_string().contains("does not exist"), "{missing}");
}

fn empty_disk() -> Arc<dyn haul_disk::Disk> {
    Arc::new(MemoryDisk::default())
}

/// Returns the payloads of a log that is open.
fn records_of(log: &TestLog) -> Vec<Vec<u8>> {
    let mut reader = log.log.reader(Lsn::default());
    let mut all = Vec::new();
    while let Some((_, payload)) = reader.read_next().unwrap() {
        all.push(payload.to_vec());
    }
    all
}

/// Returns the names of all objects.
pub(crate) fn names(store: &FaultyStore) -> Vec<String> {
    use futures_util::TryStreamExt;
    let list = object_store::ObjectStore::list(store, None);
    let metas: Vec<_> = block_on(list.try_collect()).unwrap();
    metas.into_iter().map(|meta: object_store::ObjectMeta| meta.location.to_string()).collect()
}

pub(crate) fn read(store: &FaultyStore, name: &str) -> Vec<u8> {
    use object_store::ObjectStoreExt;
    block_on(async { store.get(&name.into()).await.unwrap().bytes().await.unwrap().to_vec() })
}

pub(crate) fn write(store: &FaultyStore, name: &str, bytes: Vec<u8>) {
    use object_store::ObjectStoreExt;
    block_on(store.put(&name.into(), bytes.into())).unwrap();
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

#[test]
fn segments_that_are_complete_before_they_are_shipped_are_sent_once() {
    let store = FaultyStore::new();
    let remote = Remote::new(Arc::new(store.clone()), "copy").unwrap();
    let log = TestLog::new();
    log.put_numbers(0..120, 30_000);
    let segments = log.log.segments().len();
    assert!(segments > 3);
    let replica = log.follow(&remote).unwrap();
    replica.wait().unwrap();
    replica.stop().unwrap();
    let sent = remote.sent_bytes();
    assert!(sent < 120 * 30_000 + 200_000, "{sent} bytes");
    let names = names(&store);
    let first_names = names.iter().filter(|name| name.contains("/0000000001-")).count();
    assert_eq!(first_names, 1, "{names:?}");
    let expected = records_of(&log);
    assert!(records(&restore(Arc::new(store))) == expected);
}

/// One more request is worth as many bytes as the manifest may hold.
#[test]
fn tail_that_was_sent_often_becomes_a_chunk() {
    let store = FaultyStore::new();
    let remote = Remote::new(Arc::new(store.clone()), "copy").unwrap();
    let log = TestLog::new();
    let replica = log.follow(&remote).unwrap();
    log.put(&record(0, 5000));
    replica.wait().unwrap();
    let (requests, bytes) = (remote.requests(), remote.sent_bytes());
    for number in 1..=60 {
        log.put(&record(number, 68));
        replica.wait().unwrap();
    }
    // With 100 bytes each, the tail is a chunk after 10 of them (100 + 200 + ... > 4096).
    let requests = remote.requests() - requests;
    assert!((63..=69).contains(&requests), "{requests} requests");
    // Without this, the 60 manifests would have 3,000 bytes of the tail on average.
    let bytes = remote.sent_bytes() - bytes;
    assert!(bytes < 60 * (600 + 500), "{bytes} bytes");
    replica.stop().unwrap();
    assert_eq!(records(&restore(Arc::new(store))).len(), 61);
}
