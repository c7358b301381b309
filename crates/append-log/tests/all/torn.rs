//! Tests recovery after a power cut has torn the last batch at any byte.

use std::sync::Arc;

use haul_append_log::{Position, SpacePriority, segment_name};
use haul_disk_sim::{Medium, MemoryDisk, Survival};

use crate::payload::{ids, payload};
use crate::recovery::{bytes_of, start, without_end_page};
use crate::{open_on, put, small, started};

/// A log of eight batches and an optional ninth. The sixth batch has two records, the eighth has
/// three, and each of the others has one.
pub(crate) struct Batches {
    pub(crate) medium: Medium,
    pub(crate) positions: Vec<Position>,
}

pub(crate) fn batches(last: bool) -> Batches {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    let append = |id: usize| {
        // The lengths are multiples of 8, so records have no padding and each byte belongs to a
        // record.
        log.append(&[&payload(id as u64, [40, 48, 104][id % 3])], SpacePriority::Ordinary).unwrap()
    };
    let mut positions: Vec<_> = (0..4).map(|id| append(id).wait().unwrap()).collect();
    // Records appended during a sync form the next batch.
    for (first, others) in [(4, 5..7), (7, 8..11)] {
        let together = || others.map(append).collect::<Vec<_>>();
        let (first, others) = disk.during_a_sync(|| started(append(first)), together);
        positions.extend([first].into_iter().chain(others).map(|ticket| ticket.wait().unwrap()));
    }
    if last {
        positions.push(append(11).wait().unwrap());
    }
    let medium = disk.medium();
    drop(log);
    Batches { medium, positions }
}

impl Batches {
    pub(crate) fn file(&self) -> (Medium, String) {
        (self.medium.clone(), segment_name(1))
    }

    /// Asserts that opening delivers the first `survivors` records, and that opening again delivers
    /// the same and the record appended in between.
    fn check_recovery(&self, medium: &Medium, survivors: usize, torn_bytes: usize, what: &str) {
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

/// Returns the offset after the last non-zero byte before the header page at the end.
fn written_end(file: &mut [u8]) -> usize {
    without_end_page(file).iter().rposition(|byte| *byte != 0).unwrap() + 1
}

#[test]
fn tail_torn_at_any_byte_is_truncated() {
    let batches = batches(false);
    let begin = bytes_of(batches.positions[8]).start;
    let end = bytes_of(*batches.positions.last().unwrap()).end;
    for at in begin..end {
        let whole = batches.positions.iter().take_while(|p| bytes_of(**p).end <= at).count();
        let prefix_end = bytes_of(batches.positions[whole - 1]).end;

        // The bytes after `at` were never written.
        let (mut medium, name) = batches.file();
        medium.file(&name)[at..end].fill(0);
        let written = written_end(&mut medium.file(&name));
        let torn = written.saturating_sub(prefix_end);
        batches.check_recovery(&medium, whole, torn, &format!("nothing written after {at}"));

        // One bit is flipped, and all bytes after it are intact.
        let (mut medium, name) = batches.file();
        medium.file(&name)[at] ^= 0x10;
        let torn = end - prefix_end;
        batches.check_recovery(&medium, whole, torn, &format!("{at} flipped"));

        // All bytes after `at` are garbage.
        let (mut medium, name) = batches.file();
        medium.file(&name)[at..end].iter_mut().for_each(|byte| *byte ^= 0xa5);
        let torn = written_end(&mut medium.file(&name)) - prefix_end;
        batches.check_recovery(&medium, whole, torn, &format!("garbage after {at}"));
    }
}

#[test]
fn records_after_a_torn_record_never_reappear() {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    // The records fill whole pages, so appending a record overwrites no later record. Only recovery
    // can overwrite the records after the torn one.
    const BYTES: usize = 8192 - 32;
    let append = |id| log.append(&[&payload(id, BYTES)], SpacePriority::Ordinary).unwrap();
    let together = || (1..4).map(append).collect::<Vec<_>>();
    let (_, others) = disk.during_a_sync(|| started(append(0)), together);
    let torn: Vec<_> = others.into_iter().map(|ticket| ticket.wait().unwrap()).collect();
    let mut medium = disk.medium();
    medium.file(&segment_name(1))[bytes_of(torn[0]).start + 2000] ^= 1;

    let disk = MemoryDisk::on(&medium);
    let opened = open_on(Arc::new(disk.clone()), small()).unwrap();
    let again = put(&opened.log, &payload(4, BYTES));
    assert_eq!(again, torn[0], "not at the position of the torn record");
    let left = start(&disk.medium().cut(Survival::Nothing), small()).unwrap();
    assert!(ids(&left.records).keys().copied().eq([0, 4]));
}

#[test]
fn records_of_an_earlier_use_of_the_file_never_reappear() {
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
        let records = from.max(end)..stale.len() - 4096;
        medium.file(&segment_name(1))[records.clone()].copy_from_slice(&stale[records]);
        let disk = MemoryDisk::on(&medium);
        let opened = open_on(Arc::new(disk.clone()), small()).unwrap();
        assert!(ids(&opened.records).keys().copied().eq(100..110), "from {from}");
        assert_eq!(opened.recovered.torn_bytes, (4096 + 50 * 432 - end) as u64);
        // Each appended record ends where a stale record begins.
        for id in 110..130 {
            put(&opened.log, &payload(id, 400));
            let again = start(&disk.medium(), small()).unwrap();
            assert!(ids(&again.records).keys().copied().eq(100..=id));
        }
    }
}
