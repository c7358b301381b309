//! Tests reads of records whose length is unknown.

use std::sync::Arc;

use haul_append_log::{
    Error, Log, Lsn, Position, RECORD_HEADER_BYTES, SpacePriority, segment_name,
};
use haul_disk::Op;
use haul_disk_sim::MemoryDisk;

use crate::payload::payload;
use crate::recycled::{rotate_into_spare, with_a_spare};
use crate::{open_on, put, put_long, small};

/// The length of most payloads, in bytes.
const BYTES: u32 = 3000;

fn open(disk: &MemoryDisk) -> Log {
    open_on(Arc::new(disk.clone()), small()).unwrap().log
}

/// Reads with a hint. Asserts that the record is the one at `at`, and returns the number of reads.
fn reads_with_hint(disk: &MemoryDisk, log: &Log, at: Position, hint: u32) -> u64 {
    let before = disk.calls(Op::Read);
    let record = log.read_hinted(at.lsn, hint).unwrap();
    let reads = disk.calls(Op::Read) - before;
    assert_eq!(record.position(), at, "hint {hint}");
    assert_eq!(record.payload(), log.read(at).unwrap().payload(), "hint {hint}");
    reads
}

#[test]
fn record_within_the_hint_takes_one_read() {
    let disk = MemoryDisk::default();
    let log = open(&disk);
    let first = put(&log, &payload(0, BYTES as usize));
    let second = put(&log, &payload(1, BYTES as usize));
    let empty = log.append(&[], SpacePriority::Ordinary).unwrap().wait().unwrap();
    for at in [first, second] {
        for hint in [BYTES, BYTES + 1, 2 * BYTES, 64 << 10, 1 << 20, u32::MAX] {
            assert_eq!(reads_with_hint(&disk, &log, at, hint), 1, "hint {hint}");
        }
        for hint in [0, 1, BYTES / 2, BYTES - 1] {
            assert_eq!(reads_with_hint(&disk, &log, at, hint), 2, "hint {hint}");
        }
    }
    assert_eq!(reads_with_hint(&disk, &log, empty, 0), 1);
    assert_eq!(reads_with_hint(&disk, &log, empty, BYTES), 1);
}

#[test]
fn front_of_a_record_takes_one_read() {
    let disk = MemoryDisk::default();
    let log = open(&disk);
    let at = put(&log, &payload(0, BYTES as usize));
    put(&log, &payload(1, BYTES as usize));
    for front in [0, 1, 100, BYTES as usize, BYTES as usize + 1, 1 << 20] {
        let mut buffer = vec![0xaa; RECORD_HEADER_BYTES + front];
        let before = disk.calls(Op::Read);
        let (found, bytes) = log.read_front_hinted(at.lsn, &mut buffer).unwrap();
        assert_eq!(disk.calls(Op::Read) - before, 1);
        assert_eq!(found, at);
        assert_eq!(bytes, &payload(0, BYTES as usize)[..front.min(BYTES as usize)]);
    }
    let too_short = log.read_front_hinted(at.lsn, &mut [0; RECORD_HEADER_BYTES - 1]).map(drop);
    assert!(matches!(too_short, Err(Error::Invalid(_))), "{too_short:?}");
}

#[test]
fn record_at_the_end_of_a_segment_is_read_with_any_hint() {
    let disk = MemoryDisk::default();
    let log = open(&disk);
    let mut at = put(&log, &payload(0, 30_000));
    let mut last = at;
    while at.lsn.segment() == 1 {
        last = at;
        at = put_long(&log, 1..2);
    }
    assert!(last.lsn.offset() > small().segment_bytes - 100_000, "{last:?}");
    for (hint, reads) in [(0, 2), (29_999, 2), (30_000, 1), (1 << 20, 1), (u32::MAX, 1)] {
        assert_eq!(reads_with_hint(&disk, &log, last, hint), reads, "hint {hint}");
    }
    let mut buffer = vec![0; 1 << 20];
    let (found, front) = log.read_front_hinted(last.lsn, &mut buffer).unwrap();
    assert_eq!((found, front.len()), (last, 30_000));
}

/// The error of each function that reads the record at `at`.
fn errors(log: &Log, at: Position) -> [String; 3] {
    let error = |result: Result<(), Error>| result.unwrap_err().to_string();
    [
        error(log.read(at).map(drop)),
        error(log.read_hinted(at.lsn, 64 << 10).map(drop)),
        error(log.read_hinted(at.lsn, 10).map(drop)),
    ]
}

#[test]
fn removed_segment_is_an_invalid_argument() {
    let disk = MemoryDisk::default();
    let log = open(&disk);
    let first = put(&log, &payload(0, BYTES as usize));
    while put_long(&log, 1..2).lsn.segment() == 1 {}
    let kept = put(&log, &payload(0, BYTES as usize));
    let removed = put(&log, &payload(2, BYTES as usize));
    log.truncate_front(Lsn::new(2, 0)).unwrap();
    log.truncate_back(removed.lsn).unwrap();
    for at in [first, removed] {
        let hinted = log.read_hinted(at.lsn, BYTES);
        assert!(matches!(hinted, Err(Error::Invalid(_))), "{hinted:?}");
        let front = log.read_front_hinted(at.lsn, &mut [0; 64]).map(drop);
        assert!(matches!(front, Err(Error::Invalid(_))), "{front:?}");
        let [exact, long, short] = errors(&log, at);
        assert_eq!((&long, &short), (&exact, &exact));
    }
    assert_eq!(reads_with_hint(&disk, &log, kept, BYTES), 1);
}

#[test]
fn every_damaged_byte_is_reported_like_by_an_exact_read() {
    let disk = MemoryDisk::default();
    let log = open(&disk);
    let at = put(&log, &payload(0, 100));
    put(&log, &payload(1, 100));
    for byte in 0..RECORD_HEADER_BYTES + 100 {
        let flip = || disk.rot(&segment_name(1), u64::from(at.lsn.offset()) + byte as u64, 3);
        flip();
        let [exact, long, short] = errors(&log, at);
        assert_eq!((&long, &short), (&exact, &exact), "byte {byte}");
        assert!(exact.contains("damaged bytes"), "{exact}");
        let front = log.read_front_hinted(at.lsn, &mut [0; 64]).map(drop);
        assert_eq!(front.is_err(), byte < RECORD_HEADER_BYTES, "byte {byte}");
        flip();
        assert_eq!(reads_with_hint(&disk, &log, at, 10), 2);
    }
}

#[test]
fn stale_records_of_a_recycled_segment_are_not_read() {
    let (disk, log) = with_a_spare(&[4064]);
    let number = rotate_into_spare(&disk, &log, &mut 1000);
    let last = put(&log, &payload(1 << 20, 100));
    assert_eq!(last.lsn.segment(), number);
    let record = log.read_hinted(last.lsn, 64 << 10).unwrap();
    assert_eq!(record.payload(), payload(1 << 20, 100), "the stale bytes after it are cut off");
    let stale = (4096..small().segment_bytes - 8192).step_by(4096);
    let stale: Vec<u32> = stale.filter(|at| *at > last.lsn.offset() + 4096).collect();
    assert!(stale.len() > 100, "{}", stale.len());
    for offset in stale {
        let name = segment_name(number);
        let length = disk.medium().file(&name)[offset as usize + 4..offset as usize + 8].to_vec();
        assert_eq!(length, 4064_u32.to_le_bytes(), "a stale record");
        let lsn = Lsn::new(number, offset);
        let hinted = log.read_hinted(lsn, 4000);
        assert!(matches!(hinted, Err(Error::Damaged { .. })), "{hinted:?}");
        let front = log.read_front_hinted(lsn, &mut [0; 64]).map(drop);
        assert!(matches!(front, Err(Error::Damaged { .. })), "{front:?}");
        let old = log.read_hinted(Lsn::new(1, offset), 4000);
        assert!(matches!(old, Err(Error::Invalid(_))), "{old:?}");
    }
}
