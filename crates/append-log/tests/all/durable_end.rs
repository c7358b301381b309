//! Tests [`Replay::durable_end`]: invalid bytes before this offset are damage, not a torn tail; and
//! [`Replay::known_end`]: records before this offset are not read.

use std::sync::Arc;

use haul_append_log::{Log, OnDamage, Options, Position, Recovered, Replay, SegmentInfo};
use haul_disk::{Disk, Open};
use haul_disk_sim::{Medium, MemoryDisk};

use crate::payload::payload;
use crate::torn::batches;
use crate::{open_on, put, small};

/// A receiver that returns a given durable end and a given known end for the first segment.
#[derive(Default)]
struct Receiver {
    durable_end: u32,
    known_end: u32,
    records: Vec<Position>,
}

impl Replay for Receiver {
    fn durable_end(&mut self, _segment: SegmentInfo) -> u32 {
        self.durable_end
    }

    fn known_end(&mut self, segment: SegmentInfo) -> u32 {
        if segment.number == 1 { self.known_end } else { 0 }
    }

    fn record(&mut self, at: Position, _payload: &[u8]) {
        self.records.push(at);
    }
}

fn report() -> Options {
    Options { on_damage: OnDamage::Report, ..small() }
}

fn open_knowing(medium: &Medium, durable_end: u32) -> (Vec<Position>, Recovered, u32) {
    let mut receiver = Receiver { durable_end, ..Receiver::default() };
    let disk = Arc::new(MemoryDisk::on(medium));
    let (log, recovered) = Log::open(disk, report(), &mut receiver).unwrap();
    let next = put(&log, b"next");
    (receiver.records, recovered, next.lsn.offset())
}

#[test]
fn invalid_last_batch_before_durable_end_is_damage() {
    let batches = batches(true);
    let last = *batches.positions.last().unwrap();
    let start = last.lsn.offset();
    let end = (start + 32 + last.payload_bytes).next_multiple_of(8);
    let (whole, name) = batches.file();
    for offset in start..start + 32 + last.payload_bytes {
        let mut medium = whole.clone();
        medium.file(&name)[offset as usize] ^= 1;
        let (records, recovered, _) = open_knowing(&medium, 0);
        assert_eq!((records.len(), recovered.damage.len()), (11, 0), "it looks like a torn tail");
        let (records, recovered, next) = open_knowing(&medium, end);
        assert_eq!((records.len(), recovered.torn_bytes), (11, 0), "{offset}");
        let damage = &recovered.damage[0];
        assert_eq!((damage.offset, damage.end), (start.into(), end.into()), "{offset}");
        assert_eq!(next, end, "the next record follows the damage");
    }
    // Invalid bytes after the durable end are a torn tail.
    let mut medium = whole.clone();
    medium.file(&name)[start as usize] ^= 1;
    let (_, recovered, next) = open_knowing(&medium, start);
    assert_eq!((recovered.damage.len(), next), (0, start));
    assert!(recovered.torn_bytes > 0);
}

#[test]
fn zeroed_first_page_before_durable_end_is_damage() {
    let batches = batches(true);
    let last = *batches.positions.last().unwrap();
    let end = (last.lsn.offset() + 32 + last.payload_bytes).next_multiple_of(8);
    let (mut medium, name) = batches.file();
    medium.file(&name)[4096..8192].fill(0);
    let (records, recovered, next) = open_knowing(&medium, end);
    assert_eq!((records.len(), recovered.damage.len(), next), (0, 1, end));
}

#[test]
fn everything_after_the_end_of_a_truncated_file_before_durable_end_is_damage() {
    let batches = batches(true);
    let (whole, name) = batches.file();
    let last = *batches.positions.last().unwrap();
    let end = (last.lsn.offset() + 32 + last.payload_bytes).next_multiple_of(8);
    let mut medium = whole.clone();
    let segment_bytes = medium.file(&name).len() as u64;
    // Records behind the durable end may be lost, too.
    for file_bytes in [last.lsn.offset() + 40, end - 8] {
        let disk = Arc::new(MemoryDisk::on(&whole));
        let file = disk.open(&name, Open::default()).unwrap();
        file.resize(file_bytes.into()).unwrap();
        let mut receiver = Receiver { durable_end: end, ..Receiver::default() };
        let (_, recovered) = Log::open(disk, report(), &mut receiver).unwrap();
        let damage = &recovered.damage[0];
        let expected = (u64::from(file_bytes), segment_bytes);
        assert_eq!((damage.offset, damage.end), expected, "{file_bytes}");
    }
}

#[test]
fn records_before_known_end_are_not_read() {
    let batches = batches(true);
    let (whole, name) = batches.file();
    let last = *batches.positions.last().unwrap();
    let end = (last.lsn.offset() + 32 + last.payload_bytes).next_multiple_of(8);
    let offsets = batches.positions.iter().map(|at| at.lsn.offset()).chain([end]);
    for (skipped, known_end) in offsets.enumerate() {
        // Records before the known end may be invalid.
        let mut medium = whole.clone();
        medium.file(&name)[4096..known_end as usize].fill(0xff);
        let mut receiver = Receiver { durable_end: known_end, known_end, records: Vec::new() };
        let disk = Arc::new(MemoryDisk::on(&medium));
        let (log, recovered) = Log::open(disk, report(), &mut receiver).unwrap();
        assert_eq!(receiver.records, batches.positions[skipped..], "{known_end}");
        assert_eq!((recovered.damage.len(), recovered.torn_bytes), (0, 0), "{known_end}");
        assert_eq!(put(&log, b"next").lsn.offset(), end);
    }
}

#[test]
fn segment_is_sealed_if_known_end_is_before_or_after_its_seal() {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    let mut last = put(&log, &payload(1, 1000));
    let next = loop {
        let at = put(&log, &payload(1, 1000));
        if at.lsn.segment() > 1 {
            break at;
        }
        last = at;
    };
    log.close().unwrap();
    let seal = (last.lsn.offset() + 32 + last.payload_bytes).next_multiple_of(8);
    for known_end in [seal, seal + 32] {
        let mut receiver = Receiver { known_end, ..Receiver::default() };
        let disk = Arc::new(MemoryDisk::on(&disk.medium()));
        let (_log, recovered) = Log::open(disk, report(), &mut receiver).unwrap();
        assert_eq!(recovered.damage, [], "{known_end}");
        assert_eq!(receiver.records, [next]);
    }
}

#[test]
fn torn_tail_at_known_end_is_truncated() {
    let batches = batches(true);
    let (mut medium, name) = batches.file();
    let last = batches.positions.last().unwrap().lsn.offset();
    medium.file(&name)[last as usize] ^= 1;
    let mut receiver = Receiver { durable_end: last, known_end: last, records: Vec::new() };
    let disk = Arc::new(MemoryDisk::on(&medium));
    let (log, recovered) = Log::open(disk, report(), &mut receiver).unwrap();
    assert!(recovered.torn_bytes > 0 && receiver.records.is_empty());
    assert_eq!(put(&log, b"next").lsn.offset(), last);
}

#[test]
fn number_of_missing_last_segment_is_never_reused() {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    put(&log, &payload(1, 100));
    log.close().unwrap();
    let options = Options { numbers_after: 7, ..small() };
    let opened = open_on(Arc::new(disk), options).unwrap();
    assert_eq!(opened.records.len(), 1);
    assert!(put(&opened.log, b"next").lsn.segment() > 7);
}
