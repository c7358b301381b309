//! What opening makes of whole files: closed, not closed, unfinished, not begun, removed, known.

use std::fs;
use std::ops::Range;
use std::sync::Arc;

use haul_append_log::{
    Error, Log, OnDamage, Options, Position, Replay, Room, SegmentInfo, segment_name,
};
use haul_disk::{Disk, Op, OsDisk};
use haul_disk_sim::{FaultyDisk, Medium, MemoryDisk, Survival};

use crate::payload::{ids, payload};
use crate::{Opened, copy_of, disk_dir, open, open_on, put, put_long, small};

/// What stands before a payload.
const HEADER: u32 = 32;

pub(crate) fn report() -> Options {
    Options { on_damage: OnDamage::Report, ..small() }
}

pub(crate) fn start(medium: &Medium, options: Options) -> haul_append_log::Result<Opened> {
    open_on(Arc::new(MemoryDisk::on(medium)), options)
}

/// Where a record is in its file.
pub(crate) fn bytes_of(at: Position) -> Range<usize> {
    let start = at.lsn.offset();
    start as usize..(start + HEADER + at.payload_bytes) as usize
}

#[test]
fn a_closed_log_opens_with_all_its_records_and_says_so() {
    let dir = disk_dir();
    let first = open(dir.path());
    assert!(first.recovered.closed, "a new one");
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
fn a_log_that_was_not_closed_has_all_it_acknowledged_and_says_so() {
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
fn records_nobody_waited_for_are_on_the_medium_when_closing_returns() {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    for id in 0..50 {
        drop(log.append(&[&payload(id, 1000)], Room::Ordinary).unwrap());
    }
    log.close().unwrap();
    let again = start(&disk.medium().cut(Survival::Nothing), small()).unwrap();
    assert!(again.recovered.closed);
    assert!(ids(&again.records).keys().copied().eq(0..50));
}

/// A log of three segments and where its records are.
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
fn a_segment_made_ready_and_not_begun_is_used_by_the_next_opening() {
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
    assert_eq!(disk.calls(Op::Create), 0, "it was there");
}

#[test]
fn segments_made_ready_in_excess_are_removed() {
    let (disk, positions) = three_segments();
    let mut medium = disk.medium();
    medium.file(&segment_name(2))[4096..].fill(0);
    medium.file(&segment_name(3))[4096..].fill(0);
    let disk = MemoryDisk::on(&medium);
    let opened = open_on(Arc::new(disk.clone()), small()).unwrap();
    let in_first = positions.iter().filter(|p| p.lsn.segment() == 1).count();
    assert_eq!(opened.records.len(), in_first);
    assert_eq!(put(&opened.log, &payload(100, 100)).lsn.segment(), 2, "the first is sealed");
    assert_eq!(opened.log.segments().len(), 2);
}

#[test]
fn removed_segments_are_gone_and_the_others_stay() {
    let (disk, positions) = three_segments();
    let opened = open_on(Arc::new(disk.clone()), small()).unwrap();
    opened.log.remove_segment(2).unwrap();
    let in_second = |p: &&Position| p.lsn.segment() == 2;
    let gone = *positions.iter().find(in_second).unwrap();
    assert!(matches!(opened.log.read(gone), Err(Error::Invalid(_))));
    for number in [2, 3, 9] {
        let refused = opened.log.remove_segment(number);
        assert!(matches!(refused, Err(Error::Invalid(_))), "{number}: {refused:?}");
    }
    // Also after a power cut right then.
    let again = start(&disk.medium().cut(Survival::Nothing), small()).unwrap();
    let left = positions.iter().filter(|p| !in_second(p)).count();
    assert_eq!(again.records.len(), left);
    assert_eq!(again.log.segments().iter().map(|s| s.number).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(put(&again.log, &payload(100, 100)).lsn.segment(), 3);
}

/// Knows every segment but the named one.
struct KnowsAllBut(u32, Vec<Position>);

impl Replay for KnowsAllBut {
    fn knows(&mut self, segment: SegmentInfo) -> bool {
        segment.number != self.0
    }

    fn record(&mut self, at: Position, _payload: &[u8]) {
        self.1.push(at);
    }
}

/// Knows the second segment, and notes what comes in which order.
#[derive(Default)]
struct InOrder(Vec<u32>);

impl Replay for InOrder {
    fn knows(&mut self, segment: SegmentInfo) -> bool {
        segment.number == 2
    }

    fn take_known(&mut self, segment: SegmentInfo) -> bool {
        self.0.push(segment.number);
        true
    }

    fn record(&mut self, at: Position, _payload: &[u8]) {
        assert_ne!(at.lsn.segment(), 2);
        self.0.push(at.lsn.segment());
    }
}

#[test]
fn what_the_owner_knows_has_its_turn_among_what_is_read() {
    let (disk, _) = three_segments();
    let mut replay = InOrder::default();
    Log::open(Arc::new(disk), small(), &mut replay).unwrap();
    replay.0.dedup();
    assert_eq!(replay.0, [1, 2, 3]);
}

#[test]
fn segments_the_owner_knows_are_not_read_and_still_count_as_sealed() {
    let (disk, positions) = three_segments();
    // The seal of the second is damaged; what follows is known, so it must have been there.
    let in_second = |p: &&Position| p.lsn.segment() == 2;
    let seal = bytes_of(*positions.iter().rev().find(in_second).unwrap()).end.next_multiple_of(8);
    let mut medium = disk.medium();
    medium.file(&segment_name(2))[seal] ^= 1;
    let disk = MemoryDisk::on(&medium);
    let mut replay = KnowsAllBut(2, Vec::new());
    let (log, recovered) = Log::open(Arc::new(disk.clone()), report(), &mut replay).unwrap();
    assert_eq!(replay.1.len(), positions.iter().filter(in_second).count());
    assert_eq!(recovered.damage.len(), 1);
    let last = put_long(&log, 100..180);
    assert!(last.lsn.segment() > 4, "behind all that is known");
    assert_eq!(log.read(positions[79]).unwrap().payload(), payload(79, 30_000));
}
