//! What opening makes of files in every state: closed, cut, torn, flipped, swapped, left over.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use haul_append_log::{Damage, Error, OnDamage, Options, Position, Room, segment_name};
use haul_disk::{Disk, Op, OsDisk};

use crate::disk::FaultyDisk;
use crate::memory::{Medium, MemoryDisk, Survival};
use crate::payload::{ids, payload};
use crate::{Opened, copy_of, disk_dir, open, open_on, put, small};

/// What stands before a payload.
const HEADER: u32 = 32;

fn report() -> Options {
    Options { on_damage: OnDamage::Report, ..small() }
}

fn start(medium: &Medium, options: Options) -> haul_append_log::Result<Opened> {
    open_on(Arc::new(MemoryDisk::on(medium)), options)
}

/// Where a record is in its file.
fn bytes_of(at: Position) -> std::ops::Range<usize> {
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

/// Five records of a batch each, then a batch of three, then perhaps a batch of two.
struct Batches {
    medium: Medium,
    positions: Vec<Position>,
}

fn batches(last: bool) -> Batches {
    let memory = MemoryDisk::default();
    let disk = FaultyDisk::new(Arc::new(memory.clone()));
    let log = open_on(Arc::clone(&disk) as Arc<dyn Disk>, small()).unwrap().log;
    let append = |id: usize| {
        // Lengths of whole words, so that each byte of the file belongs to a record.
        log.append(&[&payload(id as u64, [40, 48, 104][id % 3])], Room::Ordinary).unwrap()
    };
    let mut positions: Vec<_> = (0..4).map(|id| append(id).wait().unwrap()).collect();
    // What comes while a batch is being synced is the next batch.
    for (first, others) in [(4, 5..7), (7, 8..11)] {
        let together = || others.map(append).collect::<Vec<_>>();
        let (first, others) = disk.during_a_sync(|| append(first), together);
        positions.extend([first].into_iter().chain(others).map(|ticket| ticket.wait().unwrap()));
    }
    if last {
        positions.push(append(11).wait().unwrap());
    }
    let medium = memory.medium();
    drop(log);
    Batches { medium, positions }
}

impl Batches {
    fn file(&self) -> (Medium, String) {
        (self.medium.clone(), segment_name(1))
    }

    /// The first of these records, whole, came through the opening; the second opening finds
    /// the same and what was appended in between.
    fn goes_on_with(&self, medium: &Medium, survivors: usize, torn_bytes: usize, what: &str) {
        let disk = MemoryDisk::on(medium);
        let opened = open_on(Arc::new(disk.clone()), small()).unwrap();
        let delivered: Vec<Position> = opened.records.iter().map(|(at, _)| *at).collect();
        assert_eq!(delivered, self.positions[..survivors], "{what}");
        assert_eq!(opened.recovered.torn_bytes, torn_bytes as u64, "{what}");
        assert!(!opened.recovered.closed, "{what}");
        let mut expected = ids(&opened.records);
        expected.insert(100, put(&opened.log, &payload(100, 5000)).lsn);
        let again = start(&disk.medium().cut(Survival::Nothing), small()).unwrap();
        assert_eq!(again.recovered.torn_bytes, 0, "{what}");
        assert_eq!(ids(&again.records), expected, "{what}");
    }
}

#[test]
fn a_tail_torn_at_any_byte_is_cut_and_the_log_goes_on() {
    let batches = batches(false);
    let begin = bytes_of(batches.positions[8]).start;
    let end = bytes_of(*batches.positions.last().unwrap()).end;
    for at in begin..end {
        let whole = batches.positions.iter().take_while(|p| bytes_of(**p).end <= at).count();
        let prefix_end = bytes_of(batches.positions[whole - 1]).end;

        // What lies behind was never written.
        let (mut medium, name) = batches.file();
        medium.file(&name)[at..end].fill(0);
        let written = medium.file(&name).iter().rposition(|byte| *byte != 0).unwrap() + 1;
        let torn = written.saturating_sub(prefix_end);
        batches.goes_on_with(&medium, whole, torn, &format!("nothing written behind {at}"));

        // One byte differs, and all behind is there.
        let (mut medium, name) = batches.file();
        medium.file(&name)[at] ^= 0x10;
        let torn = end - prefix_end;
        batches.goes_on_with(&medium, whole, torn, &format!("{at} flipped"));

        // All behind is something else.
        let (mut medium, name) = batches.file();
        medium.file(&name)[at..end].iter_mut().for_each(|byte| *byte ^= 0xa5);
        let torn = medium.file(&name).iter().rposition(|byte| *byte != 0).unwrap() + 1 - prefix_end;
        batches.goes_on_with(&medium, whole, torn, &format!("garbage behind {at}"));
    }
}

#[test]
fn any_flipped_byte_before_the_last_batch_is_damage_and_the_rest_is_delivered() {
    let batches = batches(true);
    let last = batches.positions.len() - 1;
    for (damaged, position) in batches.positions[..last].iter().enumerate() {
        for at in bytes_of(*position) {
            let (mut medium, name) = batches.file();
            medium.file(&name)[at] ^= 1;
            let refused = start(&medium, small()).map(drop).unwrap_err();
            let Error::Damaged { file, offset, .. } = refused else { panic!("{refused:?}") };
            assert_eq!(file, Path::new("memory").join(&name));
            assert_eq!(offset, u64::from(position.lsn.offset()), "byte {at}");

            let opened = start(&medium, report()).unwrap();
            let mut others = batches.positions.clone();
            others.remove(damaged);
            let delivered: Vec<Position> = opened.records.iter().map(|(at, _)| *at).collect();
            assert_eq!(delivered, others, "byte {at}");
            let [Damage { offset, what, .. }] = &opened.recovered.damage[..] else {
                panic!("{:?}", opened.recovered.damage)
            };
            assert_eq!(*offset, u64::from(position.lsn.offset()), "byte {at}");
            assert!(what.contains(&format!("{} bytes", bytes_of(*position).len())), "{what}");
        }
    }
}

#[test]
fn damage_in_the_last_batch_of_a_closed_log_is_no_torn_tail() {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    let first = put(&log, &payload(0, 100));
    // Nobody waits for this one but the closing itself.
    drop(log.append(&[&payload(1, 100)], Room::Ordinary).unwrap());
    log.close().unwrap();
    let mut medium = disk.medium();
    let second = bytes_of(first).end.next_multiple_of(8);
    medium.file(&segment_name(1))[second + 50] ^= 1;
    let refused = start(&medium, small()).map(drop);
    assert!(matches!(refused, Err(Error::Damaged { offset, .. }) if offset == second as u64));
}

/// A log of three segments and where its records are.
fn three_segments() -> (MemoryDisk, Vec<Position>) {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    let positions: Vec<_> = (0..80).map(|id| put(&log, &payload(id, 30_000))).collect();
    assert_eq!(log.segments().len(), 3);
    drop(log);
    (disk, positions)
}

#[test]
fn damage_anywhere_in_a_sealed_segment_is_damage_and_the_rest_is_delivered() {
    let (disk, positions) = three_segments();
    let in_second = |position: &&Position| position.lsn.segment() == 2;
    let last = *positions.iter().rev().find(in_second).unwrap();
    let first = *positions.iter().find(in_second).unwrap();
    let seal = bytes_of(last).end.next_multiple_of(8);
    for (at, start_of, lost) in [
        (bytes_of(first).start, bytes_of(first).start, 1),
        (bytes_of(last).start + 5, bytes_of(last).start, 1),
        (bytes_of(last).end - 1, bytes_of(last).start, 1),
        (seal + 10, seal, 0),
    ] {
        let mut medium = disk.medium();
        medium.file(&segment_name(2))[at] ^= 1;
        let refused = start(&medium, small()).map(drop);
        assert!(
            matches!(&refused, Err(Error::Damaged { offset, .. }) if *offset == start_of as u64)
        );
        let opened = start(&medium, report()).unwrap();
        assert_eq!(opened.records.len(), positions.len() - lost, "byte {at}");
        assert_eq!(opened.recovered.damage.len(), 1);

        let mut scanned = 0;
        let damage = opened.log.scan(2, &mut |_, _| scanned += 1).unwrap();
        assert_eq!(damage, opened.recovered.damage, "a scan says the same");
        let held = positions.iter().filter(in_second).count();
        assert_eq!(scanned, held - lost);
    }
}

#[test]
fn damage_that_comes_while_the_log_is_open_is_told_by_reads_and_scans() {
    let dir = disk_dir();
    let log = open(dir.path()).log;
    let positions: Vec<_> = (0..3).map(|id| put(&log, &payload(id, 100))).collect();
    let path = dir.path().join(segment_name(1));
    for position in &positions {
        let good = fs::read(&path).unwrap();
        let mut bad = good.clone();
        bad[bytes_of(*position).end - 1] ^= 1;
        fs::write(&path, &bad).unwrap();
        let damaged = log.read(*position).map(drop);
        assert!(matches!(damaged, Err(Error::Damaged { offset, .. })
            if offset == u64::from(position.lsn.offset())));
        let damage = log.scan(1, &mut |_, _| {}).unwrap();
        assert_eq!(damage.len(), 1, "also in the last batch: {damage:?}");
        assert_eq!(damage[0].offset, u64::from(position.lsn.offset()));
        fs::write(&path, &good).unwrap();
    }
}

#[test]
fn a_file_of_another_length_is_damage() {
    let (disk, positions) = three_segments();
    for number in 1..=3 {
        let name = segment_name(number);
        let of_segment = |p: &&Position| p.lsn.segment() == number;
        let middle = *positions.iter().filter(of_segment).nth(5).unwrap();
        for bytes in [100, 3000, 4096, bytes_of(middle).start + 10, (1 << 20) - 1, (1 << 20) + 1] {
            let mut medium = disk.medium();
            medium.file(&name).resize(bytes, 0);
            let refused = start(&medium, small()).map(drop);
            assert!(
                matches!(&refused, Err(Error::Damaged { file, .. }) if file.ends_with(&name)),
                "segment {number} of {bytes} bytes: {refused:?}"
            );
            let opened = start(&medium, report()).unwrap();
            let lost = |p: &&Position| of_segment(p) && bytes_of(**p).end > bytes;
            let expected = positions.len() - positions.iter().filter(lost).count();
            assert_eq!(opened.records.len(), expected, "segment {number} of {bytes} bytes");
            assert!(!opened.recovered.damage.is_empty());
            put(&opened.log, &payload(1000, 2000));
            let again = MemoryDisk::on(&medium);
            drop(open_on(Arc::new(again.clone()), report()).unwrap());
            assert!(open_on(Arc::new(again), report()).is_ok());
        }
    }
}

#[test]
fn one_copy_of_a_header_is_enough_and_none_is_damage() {
    let (disk, positions) = three_segments();
    for number in 1..=3 {
        let name = segment_name(number);
        for copy in [0, 2048] {
            let mut medium = disk.medium();
            medium.file(&name)[copy..copy + 512].fill(0xff);
            assert_eq!(start(&medium, small()).unwrap().records.len(), positions.len());
        }
        let mut medium = disk.medium();
        medium.file(&name)[..4096].fill(0);
        let refused = start(&medium, small()).map(drop);
        assert!(matches!(refused, Err(Error::Damaged { offset: 0, .. })));

        let disk = MemoryDisk::on(&medium);
        let opened = open_on(Arc::new(disk.clone()), report()).unwrap();
        let others = positions.iter().filter(|p| p.lsn.segment() != number).count();
        assert_eq!(opened.records.len(), others);
        // The damaged file is kept, whatever is appended.
        for id in 100..180 {
            put(&opened.log, &payload(id, 30_000));
        }
        assert!(disk.medium().file(&name)[4096..8192].iter().any(|byte| *byte != 0));
        assert_eq!(disk.medium().file(&name)[..4096], [0; 4096]);
    }
}

#[test]
fn an_unreadable_segment_behind_the_end_is_never_overwritten() {
    let (disk, _) = three_segments();
    // The second segment is not whole, and the third cannot be read: the log ends in the second.
    let mut medium = disk.medium();
    medium.file(&segment_name(3))[..4096].fill(0);
    medium.file(&segment_name(2))[500_000..].fill(0);
    let precious = medium.file(&segment_name(3)).clone();
    let disk = MemoryDisk::on(&medium);
    let log = open_on(Arc::new(disk.clone()), report()).unwrap().log;
    let last = (100..180).map(|id| put(&log, &payload(id, 30_000))).last().unwrap();
    assert!(last.lsn.segment() > 3);
    assert_eq!(*disk.medium().file(&segment_name(3)), precious);
}

#[test]
fn files_of_other_segments_or_versions_are_refused_untouched() {
    let (disk, _) = three_segments();
    let change: [(&str, &dyn Fn(&mut Medium)); 4] = [
        ("swapped", &|medium| {
            let second = medium.file(&segment_name(2)).clone();
            let first = std::mem::replace(medium.file(&segment_name(1)), second);
            *medium.file(&segment_name(2)) = first;
        }),
        ("copied", &|medium| {
            let first = medium.file(&segment_name(1)).clone();
            *medium.file(&segment_name(3)) = first;
        }),
        ("of another version", &|medium| {
            for copy in [0, 2048] {
                set_header(&mut medium.file(&segment_name(1))[copy..], 8, 2);
            }
        }),
        ("of another version, in one copy", &|medium| {
            medium.file(&segment_name(1))[..512].fill(0);
            set_header(&mut medium.file(&segment_name(1))[2048..], 8, 2);
        }),
    ];
    for (what, change) in change {
        let mut medium = disk.medium();
        change(&mut medium);
        for options in [small(), report()] {
            let disk = MemoryDisk::on(&medium);
            let refused = open_on(Arc::new(disk.clone()), options).map(drop);
            assert!(matches!(refused, Err(Error::Foreign { .. })), "{what}: {refused:?}");
            assert!(disk.steps().is_empty(), "{what}");
        }
    }
}

/// Sets a number in a copy of a header, and the checksum accordingly.
pub(crate) fn set_header(copy: &mut [u8], at: usize, value: u32) {
    copy[at..at + 4].copy_from_slice(&value.to_le_bytes());
    copy[12..16].fill(0);
    let checksum = crc32c::crc32c(&copy[..40]);
    copy[12..16].copy_from_slice(&checksum.to_le_bytes());
}

#[test]
fn a_header_with_an_impossible_length_is_refused() {
    let (disk, _) = three_segments();
    for bytes in [0, 4096, (1 << 20) + 8, (2 << 30) + 4096, u32::MAX - 4095, u32::MAX] {
        let mut medium = disk.medium();
        for copy in [0, 2048] {
            set_header(&mut medium.file(&segment_name(3))[copy..], 32, bytes);
        }
        let refused = start(&medium, report()).map(drop);
        assert!(matches!(refused, Err(Error::Foreign { .. })), "{bytes}: {refused:?}");
    }
}

#[test]
fn records_of_an_earlier_use_of_the_file_never_come_back() {
    let filled = |first: u64, count: u64| {
        let disk = MemoryDisk::default();
        let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
        for id in first..first + count {
            put(&log, &payload(id, 400));
        }
        let medium = disk.medium();
        drop(log);
        medium
    };
    let (mut earlier, now) = (filled(0, 50), filled(100, 10));
    let stale = earlier.file(&segment_name(1)).clone();
    let end = 4096 + 10 * 432;
    for from in [end, end + 8, end + 432, end + 500, 8192] {
        let mut medium = now.clone();
        medium.file(&segment_name(1))[from.max(end)..].copy_from_slice(&stale[from.max(end)..]);
        let disk = MemoryDisk::on(&medium);
        let opened = open_on(Arc::new(disk.clone()), small()).unwrap();
        assert!(ids(&opened.records).keys().copied().eq(100..110), "from {from}");
        assert_eq!(opened.recovered.torn_bytes as usize, 4096 + 50 * 432 - end);
        // Appending brings each record that follows to the place of an earlier one.
        for id in 110..130 {
            put(&opened.log, &payload(id, 400));
            let again = start(&disk.medium(), small()).unwrap();
            assert!(ids(&again.records).keys().copied().eq(100..=id));
        }
    }
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
    let memory = MemoryDisk::default();
    let log = open_on(Arc::new(memory.clone()), small()).unwrap().log;
    for id in 0..25 {
        put(&log, &payload(id, 30_000));
    }
    log.close().unwrap();
    assert_eq!(memory.list("").unwrap(), [segment_name(1), segment_name(2)]);
    let disk = FaultyDisk::new(Arc::new(memory));
    let opened = open_on(Arc::clone(&disk) as Arc<dyn Disk>, small()).unwrap();
    assert!(opened.recovered.closed);
    let last = (25..40).map(|id| put(&opened.log, &payload(id, 30_000))).last().unwrap();
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

impl haul_append_log::Replay for KnowsAllBut {
    fn knows(&mut self, segment: haul_append_log::SegmentInfo) -> bool {
        segment.number != self.0
    }

    fn record(&mut self, at: Position, _payload: &[u8]) {
        self.1.push(at);
    }
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
    let (log, recovered) =
        haul_append_log::Log::open(Arc::new(disk.clone()), report(), &mut replay).unwrap();
    assert_eq!(replay.1.len(), positions.iter().filter(in_second).count());
    assert_eq!(recovered.damage.len(), 1);
    let last = (100..180).map(|id| put(&log, &payload(id, 30_000))).last().unwrap();
    assert!(last.lsn.segment() > 4, "behind all that is known");
    assert_eq!(log.read(positions[79]).unwrap().payload(), payload(79, 30_000));
}
