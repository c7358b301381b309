//! Tests recovery without damage: of closed and unclosed logs, and of unfinished, unused, removed
//! and known segments.

use std::fs;
use std::ops::Range;
use std::sync::Arc;

use haul_append_log::{
    Error, Log, OnDamage, Options, Position, Replay, SegmentInfo, SpacePriority, segment_name,
};
use haul_disk::{Disk, Op, OsDisk};
use haul_disk_sim::{FaultyDisk, Medium, MemoryDisk, Survival};

use crate::payload::{ids, payload};
use crate::{OpenedLog, copy_of, disk_dir, open, open_on, put, put_long, small};

/// The length of a record header in bytes.
const HEADER: u32 = 32;

pub(crate) fn report() -> Options {
    Options { on_damage: OnDamage::Report, ..small() }
}

pub(crate) fn start(medium: &Medium, options: Options) -> haul_append_log::Result<OpenedLog> {
    open_on(Arc::new(MemoryDisk::on(medium)), options)
}

/// Returns the byte range of a record in its file, without padding.
pub(crate) fn bytes_of(at: Position) -> Range<usize> {
    let start = at.lsn.offset();
    start as usize..(start + HEADER + at.payload_bytes) as usize
}

#[test]
fn closed_log_is_recovered_as_closed_with_all_records() {
    let dir = disk_dir();
    let first = open(dir.path());
    assert!(first.recovered.closed, "a new one");
    drop(first);
    for round in 0..3 {
        let log = open(dir.path()).log;
        for id in 0..400 {
            put(&log, &payload(round * 400 + id, 1500));
        }
        log.close().unwrap();
        let again = open(dir.path());
        assert!(again.recovered.closed && again.recovered.torn_bytes == 0);
        assert!(ids(&again.records).keys().copied().eq(0..(round + 1) * 400));
        drop(again);
    }
}

#[test]
fn unclosed_log_is_recovered_with_all_acknowledged_records() {
    let dir = disk_dir();
    let log = open(dir.path()).log;
    for id in 0..900 {
        put(&log, &payload(id, 1500));
    }
    let copy = copy_of(dir.path());
    let again = open(copy.path());
    assert!(!again.recovered.closed && again.recovered.torn_bytes == 0);
    assert!(ids(&again.records).keys().copied().eq(0..900));
}

#[test]
fn records_of_dropped_tickets_are_durable_after_close() {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    for id in 0..50 {
        drop(log.append(&[&payload(id, 1000)], SpacePriority::Ordinary).unwrap());
    }
    log.close().unwrap();
    let again = start(&disk.medium().cut(Survival::Nothing), small()).unwrap();
    assert!(again.recovered.closed);
    assert!(ids(&again.records).keys().copied().eq(0..50));
}

/// Returns the bytes of a segment without the header page at its end.
pub(crate) fn without_end_page(file: &mut [u8]) -> &mut [u8] {
    let end = file.len() - 4096;
    &mut file[..end]
}

/// Creates a log of three segments and returns the positions of its records.
pub(crate) fn three_segments() -> (MemoryDisk, Vec<Position>) {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    let positions: Vec<_> = (0..80).map(|id| put(&log, &payload(id, 30_000))).collect();
    assert_eq!(log.segments().len(), 3);
    drop(log);
    (disk, positions)
}

#[test]
fn unfinished_segments_are_removed_and_other_files_left_alone() {
    let dir = disk_dir();
    let log = open(dir.path()).log;
    put(&log, &payload(0, 100));
    log.close().unwrap();
    let unfinished = format!("{}.new", segment_name(2));
    for name in [&unfinished, "LOCK", "notes.txt", "1.segment"] {
        fs::write(dir.path().join(name), "something").unwrap();
    }
    let opened = open(dir.path());
    assert_eq!(opened.records.len(), 1);
    let names = OsDisk::open(dir.path()).unwrap().list("").unwrap();
    assert_eq!(names, [&segment_name(1), "1.segment", "LOCK", "notes.txt"]);
}

#[test]
fn prepared_unused_segment_is_used_after_reopening() {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    put_long(&log, 0..25);
    log.close().unwrap();
    assert_eq!(disk.list("").unwrap(), [segment_name(1), segment_name(2)]);
    let disk = FaultyDisk::new(Arc::new(disk));
    let opened = open_on(Arc::new(disk.clone()), small()).unwrap();
    assert!(opened.recovered.closed);
    let last = put_long(&opened.log, 25..40);
    assert_eq!(last.lsn.segment(), 2);
    assert_eq!(disk.calls(Op::Create), 0, "a file was created");
}

#[test]
fn surplus_unused_segments_are_removed() {
    let (disk, positions) = three_segments();
    let mut medium = disk.medium();
    for number in [2, 3] {
        without_end_page(&mut medium.file(&segment_name(number)))[4096..].fill(0);
    }
    let disk = MemoryDisk::on(&medium);
    let opened = open_on(Arc::new(disk.clone()), small()).unwrap();
    let in_first = positions.iter().filter(|p| p.lsn.segment() == 1).count();
    assert_eq!(opened.records.len(), in_first);
    assert_eq!(put(&opened.log, &payload(100, 100)).lsn.segment(), 2, "the first is sealed");
    assert_eq!(opened.log.segments().len(), 2);
}

#[test]
fn removed_segment_stays_removed_after_power_cut() {
    let (disk, positions) = three_segments();
    let any_order = || Options { removes_in_order: false, ..small() };
    let opened = open_on(Arc::new(disk.clone()), any_order()).unwrap();
    opened.log.remove_segment(2).unwrap();
    let in_second = |p: &&Position| p.lsn.segment() == 2;
    let gone = *positions.iter().find(in_second).unwrap();
    assert!(matches!(opened.log.read(gone), Err(Error::Invalid(_))));
    for number in [2, 3, 9] {
        let refused = opened.log.remove_segment(number);
        assert!(matches!(refused, Err(Error::Invalid(_))), "{number}: {refused:?}");
    }
    // The power is cut right after the removal.
    let again = start(&disk.medium().cut(Survival::Nothing), any_order()).unwrap();
    let left = positions.iter().filter(|p| !in_second(p)).count();
    assert_eq!(again.records.len(), left);
    assert_eq!(again.log.segments().iter().map(|s| s.number).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(put(&again.log, &payload(100, 100)).lsn.segment(), 3);
}

/// A receiver that claims to know the records of all segments except one, so that only this one is
/// read.
struct KnowsAllExcept(u32, Vec<Position>);

impl Replay for KnowsAllExcept {
    fn is_known(&mut self, segment: SegmentInfo) -> bool {
        segment.number != self.0
    }

    fn record(&mut self, at: Position, _payload: &[u8]) {
        self.1.push(at);
    }
}

/// A receiver that claims to know the records of the second segment, and notes the order of
/// delivery.
#[derive(Default)]
struct InOrder(Vec<u32>);

impl Replay for InOrder {
    fn is_known(&mut self, segment: SegmentInfo) -> bool {
        segment.number == 2
    }

    fn apply_known(&mut self, segment: SegmentInfo) -> bool {
        self.0.push(segment.number);
        true
    }

    fn record(&mut self, at: Position, _payload: &[u8]) {
        assert_ne!(at.lsn.segment(), 2);
        self.0.push(at.lsn.segment());
    }
}

#[test]
fn known_segments_are_applied_in_order_between_delivered_ones() {
    let (disk, _) = three_segments();
    let mut replay = InOrder::default();
    Log::open(Arc::new(disk), small(), &mut replay).unwrap();
    replay.0.dedup();
    assert_eq!(replay.0, [1, 2, 3]);
}

#[test]
fn known_segments_are_not_read_and_prove_earlier_ones_sealed() {
    let (disk, positions) = three_segments();
    // The seal of the second segment, its last record, is damaged. The receiver knows a later
    // segment, so the seal must have existed.
    let in_second = |p: &&Position| p.lsn.segment() == 2;
    let seal = bytes_of(*positions.iter().rev().find(in_second).unwrap()).end.next_multiple_of(8);
    let mut medium = disk.medium();
    medium.file(&segment_name(2))[seal] ^= 1;
    let disk = MemoryDisk::on(&medium);
    let mut replay = KnowsAllExcept(2, Vec::new());
    let (log, recovered) = Log::open(Arc::new(disk.clone()), report(), &mut replay).unwrap();
    assert_eq!(replay.1.len(), positions.iter().filter(in_second).count());
    assert_eq!(recovered.damage.len(), 1);
    let last = put_long(&log, 100..180);
    assert!(last.lsn.segment() > 4, "not after the known segments");
    assert_eq!(log.read(positions[79]).unwrap().payload(), payload(79, 30_000));
}
