//! Tests that pinned records are read in part, and stay readable after their segment was removed.

use std::sync::Arc;

use haul_append_log::{Error, Lsn, Position};
use haul_disk_sim::MemoryDisk;
use haul_testing::disk_dir;

use crate::payload::payload;
use crate::{open, open_on, put, put_long, small};

#[test]
fn part_of_a_record_is_read_within_its_bounds() {
    let dir = disk_dir();
    let log = open(dir.path()).log;
    let at = put(&log, b"one record");
    put(&log, b"the next one");
    let record = log.pin(at).unwrap();
    assert_eq!(record.position(), at);
    for (offset, expected) in [(0, &b"one record"[..]), (4, b"rec"), (9, b"d"), (10, b"")] {
        let mut part = vec![0; expected.len()];
        record.read_payload_at(offset, &mut part).unwrap();
        assert_eq!(part, expected, "offset {offset}");
    }
    for (offset, bytes) in [(0, 11), (9, 2), (10, 1), (11, 0), (u32::MAX, 1)] {
        let refused = record.read_payload_at(offset, &mut vec![0; bytes]);
        assert!(matches!(refused, Err(Error::Invalid(_))), "{bytes} bytes at {offset}");
    }
    let elsewhere = Position { lsn: Lsn::new(9, 4096), ..at };
    assert!(matches!(log.pin(elsewhere), Err(Error::Invalid(_))));
}

#[test]
fn file_of_a_pinned_record_is_not_recycled() {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    let first = put_long(&log, 0..1);
    put_long(&log, 1..50);
    let record = log.pin(first).unwrap();
    log.truncate_front(Lsn::new(2, 0)).unwrap();
    assert!(matches!(log.pin(first), Err(Error::Invalid(_))));
    put_long(&log, 50..120);
    assert_eq!(log.spare_segments(), 1, "the file is recycled");
    let mut found = vec![0; first.payload_bytes as usize];
    record.read_payload_at(0, &mut found).unwrap();
    assert!(found == payload(0, 30_000));
    drop(record);
    put_long(&log, 120..190);
    assert_eq!(log.spare_segments(), 0, "the file is recycled once it is not pinned");
}

#[test]
fn record_removed_by_a_truncation_is_not_read() {
    let dir = disk_dir();
    let log = open(dir.path()).log;
    let kept = put(&log, b"kept");
    let at = put(&log, b"removed");
    let records = [kept, at].map(|at| log.pin(at).unwrap());
    log.truncate_back(at.lsn).unwrap();
    let mut bytes = [0; 4];
    records[0].read_payload_at(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"kept");
    assert!(matches!(records[1].read_payload_at(0, &mut bytes), Err(Error::Invalid(_))));
}
