//! Tests reads of many records with one call.

use std::sync::Arc;

use haul_append_log::{BatchRecord, Error, Log, Lsn, Position, RecordRequest, segment_name};
use haul_disk::Op;
use haul_disk_sim::MemoryDisk;
use haul_testing::{Random, disk_dir, seed};

use crate::payload::payload;
use crate::{open, open_on, put, small};

/// Appends `count` records of different lengths up to `bytes_max`, of which the index is the id.
fn fill(log: &Log, count: u64, bytes_max: u64) -> Vec<Position> {
    let mut random = Random(1);
    let mut length = || usize::try_from(8 + random.below(bytes_max)).unwrap();
    (0..count).map(|id| put(log, &payload(id, length()))).collect()
}

/// Returns requests for these records whole, with their ids as tags.
fn whole(records: &[Position]) -> Vec<RecordRequest> {
    let request = |(tag, at): (u64, &Position)| RecordRequest {
        lsn: at.lsn,
        payload_bytes: at.payload_bytes,
        tag,
    };
    (0..).zip(records).map(request).collect()
}

fn shuffle<T>(values: &mut [T]) {
    let mut random = Random(seed());
    (1..values.len()).for_each(|at| values.swap(at, random.index(at + 1)));
}

/// Reads the requests. Asserts that each has one result, which is the record at the position of its
/// tag, or the front of this record.
fn check(log: &Log, records: &[Position], requests: &[RecordRequest]) {
    let mut seen = vec![0; records.len()];
    for (tag, record) in log.read_batch(requests.to_vec()) {
        let index = usize::try_from(tag).unwrap();
        let expected = payload(tag, records[index].payload_bytes as usize);
        seen[index] += 1;
        match record.unwrap() {
            BatchRecord::Whole(record) => {
                assert_eq!(record.position(), records[index]);
                assert!(record.payload() == expected, "record {tag}");
            }
            BatchRecord::Front { at, front } => {
                assert_eq!(at, records[index]);
                assert!(front.len() < expected.len() && front[..] == expected[..front.len()]);
            }
        }
    }
    for request in requests {
        seen[usize::try_from(request.tag).unwrap()] -= 1;
    }
    assert!(seen.iter().all(|count| *count == 0), "a request has no result, or two");
}

fn check_random_requests(log: &Log) {
    let records = fill(log, 300, 20_000);
    let mut requests = whole(&records);
    shuffle(&mut requests);
    check(log, &records, &requests);
    check(log, &records, &requests[..100]);
    check(log, &records, &[&requests[..50], &requests[..50]].concat());
    let mut random = Random(seed());
    for request in &mut requests {
        request.payload_bytes = u32::try_from(random.below(20_000)).unwrap();
    }
    check(log, &records, &requests);
    requests.iter_mut().for_each(|request| request.payload_bytes = u32::MAX);
    check(log, &records, &requests);
    check(log, &records, &[]);
}

#[test]
fn each_request_returns_its_record() {
    check_random_requests(&open_on(Arc::new(MemoryDisk::default()), small()).unwrap().log);
    // On a real disk the records are read through io_uring.
    let dir = disk_dir();
    check_random_requests(&open(dir.path()).log);
}

#[test]
fn neighbouring_records_take_one_read() {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    let records: Vec<Position> = (0..20).map(|id| put(&log, &payload(id, 10_000))).collect();
    let reads = |records: &[Position]| {
        let before = disk.calls(Op::Read);
        let mut reader = log.read_batch(whole(records));
        assert!(reader.by_ref().all(|(_, record)| record.is_ok()));
        let reads = disk.calls(Op::Read) - before;
        assert_eq!(reader.disk_reads().0, reads);
        reads
    };
    assert_eq!(reads(&records), 1);
    // Gaps of one record are read, gaps of two are not.
    assert_eq!(reads(&records.iter().step_by(2).copied().collect::<Vec<_>>()), 1);
    assert_eq!(reads(&records.iter().step_by(3).copied().collect::<Vec<_>>()), 7);
}

#[test]
fn records_of_a_removed_segment_are_reported_alone() {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    let records = fill(&log, 200, 30_000);
    let requests = whole(&records);
    log.truncate_front(Lsn::new(2, 0)).unwrap();
    let mut removed = 0;
    for (tag, record) in log.read_batch(requests) {
        let at = records[usize::try_from(tag).unwrap()];
        assert_eq!(record.is_err(), at.lsn.segment() == 1);
        if let Err(error) = record {
            assert!(matches!(error, Error::Invalid(_)), "{error:?}");
            removed += 1;
        }
    }
    assert!(removed > 20, "{removed}");
}

#[test]
fn damaged_record_fails_alone() {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    let records = fill(&log, 30, 3000);
    // The payload of one record, and the header of another one.
    disk.rot(&segment_name(1), u64::from(records[7].lsn.offset()) + 40, 1);
    disk.rot(&segment_name(1), u64::from(records[9].lsn.offset()) + 4, 1);
    for (tag, record) in log.read_batch(whole(&records)) {
        match record {
            Ok(_) => assert!(![7, 9].contains(&tag)),
            Err(Error::Damaged { offset, .. }) => {
                assert!([7, 9].contains(&tag));
                assert_eq!(offset, u64::from(records[usize::try_from(tag).unwrap()].lsn.offset()));
            }
            Err(other) => panic!("{other:?}"),
        }
    }
}

#[test]
fn truncated_record_is_not_read() {
    let dir = disk_dir();
    let log = open(dir.path()).log;
    let records = fill(&log, 10, 3000);
    log.truncate_back(records[6].lsn).unwrap();
    for (tag, record) in log.read_batch(whole(&records)) {
        assert_eq!(record.is_ok(), tag < 6, "record {tag}");
    }
}
