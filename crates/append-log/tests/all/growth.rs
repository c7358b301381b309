//! Tests that a log with short first segments grows: the lengths of segments and of the reserve,
//! and recovery at any time of the growth.

use std::collections::BTreeSet;
use std::sync::Arc;

use haul_append_log::{Log, Lsn, Options, SpacePriority};
use haul_disk::{Disk, Durability, Open, write_full};
use haul_disk_sim::MemoryDisk;
use haul_testing::eventually;

use crate::payload::{ids, payload};
use crate::recycled::spare;
use crate::{open_on, put, put_long, small};

const KIB: u32 = 1 << 10;

/// Options with which the lengths of segments are 128, 256, 512 and then 1024 KiB.
pub(crate) fn growing() -> Options {
    Options { first_segment_bytes: Some(128 * KIB), ..small() }
}

fn with_reserve() -> Options {
    Options { compaction_segments: 2, ..growing() }
}

pub(crate) fn lengths(log: &Log) -> Vec<u32> {
    log.segments().iter().map(|segment| segment.bytes / KIB).collect()
}

/// Returns the lengths of the spare files whose names are durable, in KiB. The log may remove or
/// rename files meanwhile.
fn spare_lengths(disk: &MemoryDisk) -> Vec<usize> {
    let mut names = disk.list("").unwrap();
    let mut medium = disk.medium();
    let durable: BTreeSet<String> = medium.file_names().map(str::to_owned).collect();
    names.retain(|name| name.ends_with(".spare") && durable.contains(name));
    names.iter().map(|name| medium.file(name).len() / KIB as usize).collect()
}

/// Appends records until the log has this number of segments.
fn fill_up_to(log: &Log, segments: usize, next_id: &mut u64) {
    while log.segments().len() < segments {
        put_long(log, *next_id..*next_id + 1);
        *next_id += 1;
    }
}

#[test]
fn each_segment_is_twice_as_long_until_the_maximum() {
    let disk = MemoryDisk::default();
    let mut id = 0;
    for segments in 1..=7 {
        let opened = open_on(Arc::new(disk.clone()), growing()).unwrap();
        assert!(ids(&opened.records).keys().copied().eq(0..id));
        fill_up_to(&opened.log, segments, &mut id);
        let expected = [128, 256, 512, 1024, 1024, 1024, 1024];
        assert_eq!(lengths(&opened.log), expected[..segments]);
        if segments.is_multiple_of(2) {
            opened.log.close().unwrap();
        }
    }
}

#[test]
fn first_segment_holds_any_record_that_fits_into_a_buffer() {
    let disk = MemoryDisk::default();
    let options = Options { first_segment_bytes: Some(4096), ..small() };
    let log = open_on(Arc::new(disk), options).unwrap().log;
    assert_eq!(lengths(&log), [(64 << 10) / KIB + 8]);
    let longest = 60_000;
    for id in 0..20 {
        put(&log, &payload(id, longest));
    }
    assert_eq!(log.segments().last().unwrap().bytes, small().segment_bytes);
}

#[test]
fn reserve_grows_with_the_longest_segment() {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), with_reserve()).unwrap().log;
    let mut id = 0;
    fill_up_to(&log, 6, &mut id);
    // The next segment is prepared when a quarter of this one is written, and the reserve after it.
    put_long(&log, id..id + 12);
    eventually("the shorter reserved files are replaced", || spare_lengths(&disk) == [1024; 2]);
    let space = log.space().unwrap();
    assert_eq!((space.reserved_segments, space.reserved_segments_wanted), (2, 2));
    assert_eq!(space.reserved_segment_bytes, 1024 * u64::from(KIB));
    drop(log);
    let log = open_on(Arc::new(disk.clone()), with_reserve()).unwrap().log;
    assert_eq!(spare_lengths(&disk), [1024; 2]);
    assert_eq!(log.spare_segments(), 2);
}

#[test]
fn outgrown_reserve_is_kept_until_the_disk_has_space_for_a_longer_one() {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), growing()).unwrap().log;
    let mut id = 0;
    // The reserve takes at most a third of the disk.
    fill_up_to(&log, 8, &mut id);
    log.close().unwrap();
    for number in [91, 92] {
        let file = disk.create(&spare(number), Open::default()).unwrap();
        write_full(&*file, &vec![1; 512 << 10], 0).unwrap();
        file.sync(Durability::Everything).unwrap();
    }
    disk.sync_dir("").unwrap();
    disk.limit(Some(disk.used_bytes()));
    let log = open_on(Arc::new(disk.clone()), with_reserve()).unwrap().log;
    assert_eq!(spare_lengths(&disk), [512; 2]);
    let space = log.space().unwrap();
    assert_eq!((space.reserved_segments, space.reserved_segments_wanted), (0, 2));
    // The outgrown files are of use to compaction.
    while log.segments().len() == 8 {
        let copied = log.append(&[&payload(id, 30_000)], SpacePriority::Compaction).unwrap().wait();
        copied.unwrap();
        id += 1;
    }
    assert_eq!((lengths(&log)[8], spare_lengths(&disk)), (512, vec![512]));
    log.close().unwrap();

    disk.limit(None);
    let opened = open_on(Arc::new(disk.clone()), with_reserve()).unwrap();
    assert!(ids(&opened.records).keys().copied().eq(0..id));
    eventually("the reserve has whole files", || spare_lengths(&disk) == [1024; 2]);
}

#[test]
fn removed_short_segments_are_not_recycled() {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), growing()).unwrap().log;
    let mut id = 0;
    fill_up_to(&log, 6, &mut id);
    log.truncate_front(Lsn::new(4, 0)).unwrap();
    assert_eq!(log.spare_segments(), 0);
    log.truncate_front(Lsn::new(6, 0)).unwrap();
    assert_eq!((log.spare_segments(), spare_lengths(&disk)), (2, vec![1024; 2]));
    fill_up_to(&log, 4, &mut id);
    assert_eq!(lengths(&log), [1024; 4]);
}
