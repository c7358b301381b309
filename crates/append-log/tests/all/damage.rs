//! Tests that damage to durable bytes is reported: flipped bits, truncated files, swapped segments,
//! and segments of other logs or versions.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use haul_append_log::{Damage, Error, Position, SpacePriority, segment_name};
use haul_disk_sim::{Medium, MemoryDisk};

use crate::payload::payload;
use crate::recovery::{bytes_of, report, start, three_segments};
use crate::torn::batches;
use crate::{disk_dir, open, open_on, put, put_long, small};

#[test]
fn flipped_byte_before_last_batch_is_damage_and_others_are_delivered() {
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
fn damage_in_last_batch_of_closed_log_is_no_torn_tail() {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    let first = put(&log, &payload(0, 100));
    // No caller waits for this record. It is synced when the log is closed, at the latest.
    drop(log.append(&[&payload(1, 100)], SpacePriority::Ordinary).unwrap());
    log.close().unwrap();
    let mut medium = disk.medium();
    let second = bytes_of(first).end.next_multiple_of(8);
    medium.file(&segment_name(1))[second + 50] ^= 1;
    let refused = start(&medium, small()).map(drop);
    assert!(matches!(refused, Err(Error::Damaged { offset, .. }) if offset == second as u64));
}

#[test]
fn damage_in_sealed_segment_is_reported_and_others_are_delivered() {
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
        assert_eq!(damage, opened.recovered.damage, "a scan reports the same");
        let held = positions.iter().filter(in_second).count();
        assert_eq!(scanned, held - lost);
    }
}

#[test]
fn damage_while_open_is_reported_by_reads_and_scans() {
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
fn file_of_wrong_length_is_damage() {
    let (disk, positions) = three_segments();
    for number in 1..=3 {
        let name = segment_name(number);
        let in_segment = |p: &&Position| p.lsn.segment() == number;
        let middle = *positions.iter().filter(in_segment).nth(5).unwrap();
        for bytes in [100, 3000, 4096, bytes_of(middle).start + 10, (1 << 20) - 1, (1 << 20) + 1] {
            let mut medium = disk.medium();
            medium.file(&name).resize(bytes, 0);
            let refused = start(&medium, small()).map(drop);
            assert!(
                matches!(&refused, Err(Error::Damaged { file, .. }) if file.ends_with(&name)),
                "segment {number} of {bytes} bytes: {refused:?}"
            );
            let opened = start(&medium, report()).unwrap();
            let lost = |p: &&Position| in_segment(p) && bytes_of(**p).end > bytes;
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
fn header_is_read_from_any_valid_copy() {
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
        let opened = start(&medium, small()).unwrap();
        assert_eq!(opened.records.len(), positions.len());
        assert_eq!(opened.recovered.header_damage[0].offset, 0);
        let end_page = medium.file(&name).len() - 4096;
        medium.file(&name)[end_page..].fill(0);
        let refused = start(&medium, small()).map(drop);
        assert!(matches!(refused, Err(Error::Damaged { offset: 0, .. })));

        let disk = MemoryDisk::on(&medium);
        let opened = open_on(Arc::new(disk.clone()), report()).unwrap();
        let others = positions.iter().filter(|p| p.lsn.segment() != number).count();
        assert_eq!(opened.records.len(), others);
        // Appends never overwrite the damaged file.
        put_long(&opened.log, 100..180);
        assert!(disk.medium().file(&name)[4096..8192].iter().any(|byte| *byte != 0));
        assert_eq!(disk.medium().file(&name)[..4096], [0; 4096]);
    }
}

#[test]
fn unreadable_segment_after_the_end_is_never_overwritten() {
    let (disk, _) = three_segments();
    // The second segment is incomplete and the third unreadable: the log ends in the second.
    let mut medium = disk.medium();
    let end_page = medium.file(&segment_name(3)).len() - 4096;
    medium.file(&segment_name(3))[..4096].fill(0);
    medium.file(&segment_name(3))[end_page..].fill(0);
    medium.file(&segment_name(2))[500_000..].fill(0);
    let unreadable = medium.file(&segment_name(3)).clone();
    let disk = MemoryDisk::on(&medium);
    let log = open_on(Arc::new(disk.clone()), report()).unwrap().log;
    let last = put_long(&log, 100..180);
    assert!(last.lsn.segment() > 3);
    assert_eq!(*disk.medium().file(&segment_name(3)), unreadable);
}

/// A change to the files of a closed log.
type Change = &'static dyn Fn(&mut Medium);

#[test]
fn foreign_segments_and_versions_are_refused_unchanged() {
    let (disk, _) = three_segments();
    let changes: [(&str, Change); 4] = [
        ("swapped", &|medium| {
            let second = medium.file(&segment_name(2)).clone();
            let first = std::mem::replace(&mut *medium.file(&segment_name(1)), second);
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
    for (what, change) in changes {
        let mut medium = disk.medium();
        change(&mut medium);
        for options in [small(), report()] {
            let disk = MemoryDisk::on(&medium);
            let refused = open_on(Arc::new(disk.clone()), options).map(drop);
            let Err(error @ Error::UnsupportedFormat { .. }) = refused else {
                panic!("{what}: {refused:?}")
            };
            if what.contains("version") {
                let found = "memory/0000000001.segment is not a segment this version can read: \
                             its format has version 2, not 1";
                assert_eq!(error.to_string(), found, "{what}");
            }
            assert!(disk.steps().is_empty(), "{what}");
        }
    }
}

/// Sets the number at offset `at` in a copy of a segment header, and updates its checksum.
pub(crate) fn set_header(copy: &mut [u8], at: usize, value: u32) {
    copy[at..at + 4].copy_from_slice(&value.to_le_bytes());
    copy[12..16].fill(0);
    let checksum = haul_crc::crc32c(&copy[..48]);
    copy[12..16].copy_from_slice(&checksum.to_le_bytes());
}

#[test]
fn header_with_invalid_length_is_refused() {
    let (disk, _) = three_segments();
    for bytes in [0, 4096, (1 << 20) + 8, (2 << 30) + 4096, u32::MAX - 4095, u32::MAX] {
        let mut medium = disk.medium();
        for copy in [0, 2048] {
            set_header(&mut medium.file(&segment_name(3))[copy..], 32, bytes);
        }
        let refused = start(&medium, report()).map(drop);
        assert!(matches!(refused, Err(Error::UnsupportedFormat { .. })), "{bytes}: {refused:?}");
    }
}
