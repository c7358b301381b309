//! Tests that locked bytes are those of their record, and that their file is never overwritten.

use haul_append_log::{Error, LockedBytes, Log, Lsn, Position};
use haul_disk::{Disk, Open, OsDisk};
use haul_testing::disk_dir;

use crate::payload::payload;
use crate::{open, put_long, small, try_open};

fn lock(log: &Log, at: Position, from: u32, bytes: u32) -> Option<LockedBytes> {
    log.lock_payload(&log.pin(at).unwrap(), from, bytes).unwrap()
}

fn bytes(locked: &LockedBytes) -> Vec<u8> {
    let mut bytes = vec![0; locked.bytes()];
    locked.read(0, &mut bytes).unwrap();
    bytes
}

/// Reads the record, so that it is in the page cache.
fn warm(log: &Log, at: Position) {
    assert!(!log.read(at).unwrap().payload().is_empty());
}

#[test]
fn file_with_locked_bytes_is_removed_and_not_recycled() {
    let dir = disk_dir();
    let log = try_open(dir.path(), small()).unwrap().log;
    let first = put_long(&log, 0..1);
    put_long(&log, 1..50);
    warm(&log, first);
    let all = payload(0, 30_000);
    let locked = lock(&log, first, 0, first.payload_bytes).unwrap();
    let part = lock(&log, first, 10_001, 9_000).unwrap();
    assert!(bytes(&locked) == all && bytes(&part) == all[10_001..19_001]);
    assert!(part.offset() == locked.offset() + 10_001);
    assert!(part.read(8_999, &mut [0; 2]).is_err() && part.read(8_999, &mut [0]).is_ok());
    assert!(!locked.is_segment_removed() && log.locked_removals() == 0);

    let spares = log.spare_segments();
    log.truncate_front(Lsn::new(2, 0)).unwrap();
    assert!(locked.is_segment_removed() && log.locked_removals() == 1);
    assert_eq!(log.spare_segments(), spares, "the file is no spare file");
    put_long(&log, 50..190);
    assert!(bytes(&locked) == all && bytes(&part) == all[10_001..19_001]);
}

#[test]
fn bytes_near_the_end_of_the_log_or_outside_the_page_cache_are_not_locked() {
    let dir = disk_dir();
    let log = open(dir.path()).log;
    let at = put_long(&log, 0..1);
    warm(&log, at);
    assert!(lock(&log, at, 0, at.payload_bytes).is_none(), "the log still writes near them");
    drop(log);

    let dir = disk_dir();
    let log = try_open(dir.path(), small()).unwrap().log;
    let at = put_long(&log, 0..1);
    put_long(&log, 1..50);
    let record = log.pin(at).unwrap();
    let past_the_end = log.lock_payload(&record, 1, at.payload_bytes);
    assert!(matches!(past_the_end, Err(Error::Invalid(_))));
    assert!(lock(&log, at, 0, 0).is_none());
    let name = haul_append_log::segment_name(at.lsn.segment());
    let file = OsDisk::open(dir.path()).unwrap().open(&name, Open::default()).unwrap();
    haul_disk::evict(&*file, 0, u64::MAX).unwrap();
    assert!(lock(&log, at, 0, at.payload_bytes).is_none(), "it is not in the page cache");
}

#[test]
fn segment_with_locked_bytes_is_not_truncated() {
    let dir = disk_dir();
    let log = try_open(dir.path(), small()).unwrap().log;
    let first = put_long(&log, 0..1);
    put_long(&log, 1..50);
    warm(&log, first);
    let locked = lock(&log, first, 0, first.payload_bytes).unwrap();
    assert!(matches!(log.truncate_back(first.lsn), Err(Error::Invalid(_))));
    assert!(log.read(first).is_ok() && bytes(&locked) == payload(0, 30_000));
}
