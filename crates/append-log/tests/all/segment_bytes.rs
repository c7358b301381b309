//! Tests that the bytes of segments can be read while the log is written, and that a log rebuilt
//! from them has the same records.

use std::collections::BTreeMap;
use std::sync::Arc;

use haul_append_log::{Error, Log, Lsn, Position, RebuiltSegment};
use haul_disk::{Disk, Open, read_full, write_full};
use haul_disk_sim::{Crash, Crashes, MemoryDisk, crash_everywhere};

use crate::payload::payload;
use crate::{open_on, put, put_long, small};

/// A copy of a log: for each segment its bytes so far, and whether they are complete.
#[derive(Default)]
struct Copy {
    segments: BTreeMap<u32, (Vec<u8>, bool)>,
    records: Vec<Lsn>,
}

impl Copy {
    /// Reads everything that is durable and not yet copied, about `step` bytes at a time.
    fn advance(&mut self, log: &Log, step: usize) {
        for info in log.segments() {
            let (bytes, is_complete) = self.segments.entry(info.number).or_default();
            while !*is_complete {
                let from = u32::try_from(bytes.len()).unwrap();
                let mut each = |at: Position, _: &[u8]| self.records.push(at.lsn);
                let read = log.read_bytes(info.number, from, step, bytes, &mut each).unwrap();
                assert_eq!(read.segment, info);
                assert_eq!(bytes.len(), (from + read.bytes) as usize);
                *is_complete = read.is_complete;
                if read.bytes == 0 {
                    break;
                }
            }
        }
    }

    fn rebuild(&self) -> MemoryDisk {
        let disk = MemoryDisk::default();
        for (bytes, _) in self.segments.values().filter(|(bytes, _)| !bytes.is_empty()) {
            let rebuilt = RebuiltSegment::create(&disk, bytes).unwrap();
            rebuilt.write(0, bytes).unwrap();
            rebuilt.finish().unwrap();
        }
        disk.sync_dir("").unwrap();
        disk
    }
}

#[test]
fn rebuilt_log_has_the_same_records_and_continues() {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    let mut copy = Copy::default();
    for round in 0..40 {
        put(&log, &payload(round, 10 + 17 * usize::try_from(round).unwrap()));
        put(&log, &[7; 5000]);
        put_long(&log, 3 * round..3 * round + 3);
        if round % 7 == 0 {
            log.write_watermark().unwrap();
        }
        copy.advance(&log, 50_000);
    }
    let segments = log.segments().len();
    assert!(segments >= 3, "{segments}");
    let complete = copy.segments.values().filter(|(_, is_complete)| *is_complete).count();
    assert!(complete + 2 >= segments, "{complete} of {segments} segments are complete");
    log.close().unwrap();
    let original = open_on(Arc::new(disk), small()).unwrap();
    let rebuilt = open_on(Arc::new(copy.rebuild()), small()).unwrap();
    assert!(rebuilt.records == original.records, "the records differ");
    let lsns: Vec<_> = rebuilt.records.iter().map(|(at, _)| at.lsn).collect();
    assert_eq!(copy.records, lsns, "each record is delivered once, in order");
    let at = put(&rebuilt.log, b"another record");
    assert_eq!(rebuilt.log.read(at).unwrap().payload(), b"another record");
}

#[test]
fn bytes_of_an_open_log_never_change() {
    let log = open_on(Arc::new(MemoryDisk::default()), small()).unwrap().log;
    put(&log, b"first");
    let none = &mut |_: Position, _: &[u8]| {};
    let (mut early, mut late) = (Vec::new(), b"before".to_vec());
    log.read_bytes(1, 0, 1 << 20, &mut early, none).unwrap();
    put_long(&log, 0..50);
    let read = log.read_bytes(1, 0, 4 << 20, &mut late, none).unwrap();
    assert_eq!(late.len(), 6 + read.bytes as usize);
    assert!(read.is_complete && late[6..].starts_with(&early));
    let after = log.read_bytes(1, read.bytes, 1 << 20, &mut late, none).unwrap();
    assert!(after.is_complete && after.bytes == 0);
    assert_eq!(late.len(), 6 + read.bytes as usize);
}

#[test]
fn records_removed_at_the_back_stay_removed_in_the_copy() {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    put(&log, b"kept");
    let removed = put(&log, b"removed");
    let mut copy = Copy::default();
    copy.advance(&log, 1 << 20);
    log.truncate_back(removed.lsn).unwrap();
    put(&log, b"after");
    copy.advance(&log, 1 << 20);
    let rebuilt = open_on(Arc::new(copy.rebuild()), small()).unwrap();
    let payloads: Vec<_> = rebuilt.records.iter().map(|(_, payload)| &payload[..]).collect();
    assert_eq!(payloads, [&b"kept"[..], b"after"]);
}

#[test]
fn damaged_record_is_not_copied() {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    put(&log, b"first");
    let second = put(&log, b"second");
    put(&log, b"third");
    disk.rot(&haul_append_log::segment_name(1), u64::from(second.lsn.offset()) + 34, 0);
    let mut bytes = b"before".to_vec();
    let read = log.read_bytes(1, 0, 1 << 20, &mut bytes, &mut |_, _| {});
    let Err(Error::Damaged { offset, .. }) = read else { panic!("{read:?}") };
    assert_eq!(offset, u64::from(second.lsn.offset()));
    let missing = log.read_bytes(9, 0, 1, &mut bytes, &mut |_, _| {});
    assert!(matches!(missing, Err(Error::Invalid(_))));
    assert_eq!(bytes, b"before");
}

#[test]
fn bytes_that_are_no_segment_are_refused() {
    let disk = MemoryDisk::default();
    let refused = RebuiltSegment::create(&disk, &[0; 4096]);
    assert!(matches!(refused, Err(Error::Invalid(_))));
    assert!(disk.list("").unwrap().is_empty());
    let log = open_on(Arc::new(MemoryDisk::default()), small()).unwrap().log;
    put(&log, b"one");
    let mut copy = Vec::new();
    log.read_bytes(1, 0, 1, &mut copy, &mut |_, _| {}).unwrap();
    let rebuilt = RebuiltSegment::create(&disk, &copy[..4096]).unwrap();
    assert_eq!(rebuilt.info(), log.segments()[0]);
    assert!(matches!(rebuilt.write((1 << 20) - 4096, &[1]), Err(Error::Invalid(_))));
}

/// After a power cut, the blocks of a new file may have the bytes of another one. A file with the
/// header of its segment has no such bytes: they could be records.
#[test]
fn interrupted_segment_has_no_bytes_of_other_files() {
    let log = open_on(Arc::new(MemoryDisk::default()), small()).unwrap().log;
    put_long(&log, 0..3);
    let copy = copied(&log, 0, 1 << 20);
    let workload = |disk: &MemoryDisk| {
        let other = disk.create("other", Open::default()).unwrap();
        write_full(&*other, &[0xee; 2 << 20], 0).unwrap();
        let rebuilt = RebuiltSegment::create(disk, &copy).unwrap();
        rebuilt.write(0, &copy).unwrap();
    };
    let check = |(): &(), crash: &Crash| {
        let Ok(Some(_)) = RebuiltSegment::open(&crash.disk, &copy) else { return };
        let name = haul_append_log::segment_name(1);
        let file = crash.disk.open(&name, Open::default()).unwrap();
        let mut found = vec![0; usize::try_from(file.bytes().unwrap()).unwrap()];
        read_full(&*file, &mut found, 0).unwrap();
        // The last page is a second header.
        found.truncate(found.len() - 4096);
        let is_foreign = |(at, byte): (usize, &u8)| *byte != 0 && copy.get(at) != Some(byte);
        let foreign = found.iter().enumerate().position(|(at, byte)| is_foreign((at, byte)));
        assert_eq!(foreign, None, "bytes of another file");
    };
    assert!(crash_everywhere(&Crashes::default(), workload, check) > 50);
}

/// Returns bytes of the first segment.
fn copied(log: &Log, from: u32, bytes_max: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    log.read_bytes(1, from, bytes_max, &mut bytes, &mut |_, _| {}).unwrap();
    bytes
}

#[test]
fn rebuilt_segment_is_continued_by_another_process() {
    let log = open_on(Arc::new(MemoryDisk::default()), small()).unwrap().log;
    put(&log, b"first");
    let copy = copied(&log, 0, 1 << 20);
    put(&log, b"second");
    let from = u32::try_from(copy.len()).unwrap();
    let rest = copied(&log, from, 1 << 20);
    let disk = MemoryDisk::default();
    assert!(RebuiltSegment::open(&disk, &copy).unwrap().is_none());
    let rebuilt = RebuiltSegment::create(&disk, &copy).unwrap();
    rebuilt.write(0, &copy).unwrap();
    rebuilt.sync().unwrap();
    let again = RebuiltSegment::open(&disk, &copy).unwrap().unwrap();
    assert!(again.is_zero_from(from).unwrap() && !again.is_zero_from(from - 8).unwrap());
    let mut local = Vec::new();
    again.read(4096, from, &mut |piece| local.extend_from_slice(piece)).unwrap();
    assert!(local == copy[4096..]);
    let mut payloads = Vec::new();
    let mut each = |payload: &[u8]| payloads.push(payload.to_vec());
    again.verify_records(0, &copy, &mut each).unwrap();
    again.verify_records(from, &rest, &mut each).unwrap();
    assert_eq!(payloads, [&b"first"[..], b"second"]);
    let mut damaged = rest.clone();
    damaged[33] ^= 1;
    for invalid in [&damaged[..], &rest[..rest.len() - 8], &rest[8..]] {
        assert!(matches!(again.verify_records(from, invalid, &mut |_| {}), Err(Error::Invalid(_))));
    }
    // A power cut may have left only the first header page.
    let end = 1 << 20;
    let file = disk.open(&haul_append_log::segment_name(1), Open::default()).unwrap();
    write_full(&*file, &[0; 4096], end - 4096).unwrap();
    RebuiltSegment::open(&disk, &copy).unwrap().unwrap().sync().unwrap();
    let left = MemoryDisk::on(&disk.medium());
    let opened = open_on(Arc::new(left), small()).unwrap();
    assert_eq!(opened.recovered.header_damage, []);
    // The file of another segment with the same number is not continued.
    let other = open_on(Arc::new(MemoryDisk::default()), small()).unwrap().log;
    put(&other, b"other");
    let other = copied(&other, 0, 1);
    assert!(matches!(RebuiltSegment::open(&disk, &other), Err(Error::Damaged { .. })));
    // A power cut may have left the header of another segment in the blocks of the file.
    log.truncate_back(log.synced()).unwrap();
    put(&log, b"third");
    let mut second = Vec::new();
    log.read_bytes(2, 0, 1, &mut second, &mut |_, _| {}).unwrap();
    let file = disk.open(&haul_append_log::segment_name(1), Open::default()).unwrap();
    write_full(&*file, &second[..4096], 0).unwrap();
    assert!(RebuiltSegment::open(&disk, &copy).unwrap().is_none());
    RebuiltSegment::create(&disk, &copy).unwrap();
    // One whose creation was interrupted is removed.
    disk.remove(&haul_append_log::segment_name(1)).unwrap();
    disk.create(&haul_append_log::segment_name(1), Open::default()).unwrap();
    assert!(RebuiltSegment::open(&disk, &copy).unwrap().is_none());
    assert!(disk.list("").unwrap().is_empty());
}
