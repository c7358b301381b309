//! Tests which closed files are removed.

use std::sync::Arc;
use std::time::Duration;

use haul_disk::{Disk, Op, Open};
use haul_disk_sim::MemoryDisk;
use haul_line_log::{Event, LineLog, Options, Retention};
use rustix::io::Errno;

use crate::{EventLog, all, closed, files, line, numbers, open_on, small};

const UNLIMITED: Retention = Retention { files_max: None, bytes_max: None, age_max: None };

fn rotate_often(log: &LineLog, count: u64) {
    for number in 0..count {
        log.append(&line(number, 1000)).unwrap();
        log.rotate().unwrap();
    }
}

#[test]
fn files_max_limits_closed_files() {
    let disk = MemoryDisk::default();
    disk.create("notes.txt", Open::default()).unwrap();
    let log =
        open_on(&disk, Options { keep: Retention { files_max: Some(3), ..UNLIMITED }, ..small() });
    rotate_often(&log, 10);
    assert_eq!(numbers(&all(&disk)), [7, 8, 9]);
    assert_eq!((log.stats().rotations, log.stats().removed), (10, 7));
    assert!(disk.open("notes.txt", Open::default()).is_ok(), "an unrelated file was removed");
    drop(log);
    // A lower limit takes effect when the log is opened.
    drop(open_on(
        &disk,
        Options { keep: Retention { files_max: Some(1), ..UNLIMITED }, ..small() },
    ));
    assert_eq!(numbers(&all(&disk)), [9]);
}

#[test]
fn directory_never_exceeds_bytes_max() {
    let disk = MemoryDisk::default();
    let keep = Retention { bytes_max: Some(16 << 10), ..UNLIMITED };
    let log = open_on(&disk, Options { keep, ..small() });
    for number in 0..300 {
        log.append(&line(number, 450)).unwrap();
        log.write_out().unwrap();
        let bytes: usize = files(&disk).iter().map(Vec::len).sum();
        assert!(bytes <= 16 << 10, "{bytes}");
    }
    log.close().unwrap();
    let bytes: usize = files(&disk).iter().map(Vec::len).sum();
    assert!((10 << 10..=16 << 10).contains(&bytes), "{bytes}");
    let left = numbers(&all(&disk));
    assert_eq!(left, (300 - left.len() as u64..300).collect::<Vec<_>>(), "the newest");
}

#[test]
fn files_older_than_age_max_are_removed() {
    let disk = MemoryDisk::default();
    let age_max = Some(Duration::from_hours(24));
    let old = ["19700101T000000.000000Z.log", "20200101T000000.000000Z.unsynced"];
    let newer = ["29991231T235959.000000Z.log"];
    old.iter().chain(&newer).for_each(|name| {
        disk.create(name, Open::default()).unwrap();
    });
    let log = open_on(&disk, Options { keep: Retention { age_max, ..UNLIMITED }, ..small() });
    assert_eq!(closed(&disk), newer);
    rotate_often(&log, 2);
    assert_eq!(closed(&disk).len(), 3);
}

#[test]
fn failed_removal_is_reported_and_retried() {
    let (disk, events) = (MemoryDisk::default(), EventLog::default());
    let options = Options { keep: Retention { files_max: Some(2), ..UNLIMITED }, ..small() };
    let log = LineLog::open_on(Arc::new(disk.clone()), options, events.environment()).unwrap();
    disk.fail(Op::Remove, 1, 3, Errno::ACCESS);
    rotate_often(&log, 4);
    assert_eq!(closed(&disk).len(), 4);
    assert!(log.last_error().is_some_and(|error| error.to_string().contains("cannot remove")));
    rotate_often(&log, 2);
    assert_eq!(closed(&disk).len(), 2);
    log.close().unwrap();
    assert_eq!(events.count(|event| matches!(event, Event::RemoveFailed(_))), 3);
    assert_eq!(events.count(|event| matches!(event, Event::Removed { .. })), 4);
    assert_eq!(events.count(|event| matches!(event, Event::Closed { bytes: 1000, .. })), 6);
}
