//! Tests that on a full disk no line is lost and no retained file is removed.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use haul_disk::{Disk, Op, OsDisk};
use haul_disk_sim::MemoryDisk;
use haul_line_log::{Error, Event, LineLog, Options, Retention};
use haul_testing::{LoopImage, eventually};
use rustix::io::Errno;

use crate::{EventLog, all, closed, line, numbers, open, open_on, small, within_a_minute};

fn is_full(error: &Error) -> bool {
    matches!(error, Error::WriteFailed { source, .. } if source.is_full())
}

/// Appends lines of 100 bytes until the disk is full. Returns the number of the first unwritten
/// line.
fn fill(log: &LineLog) -> u64 {
    for number in 0.. {
        log.append(&line(number, 100)).unwrap();
        match log.write_out() {
            Ok(()) => {}
            Err(error) if is_full(&error) => return number,
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!("the disk is never full")
}

#[test]
fn lines_stay_in_memory_until_a_full_disk_has_space() {
    let (disk, events) = (MemoryDisk::default(), EventLog::default());
    let log = LineLog::open_on(Arc::new(disk.clone()), small(), events.environment()).unwrap();
    disk.limit(Some(40 << 10));
    let first = fill(&log);
    assert!(first > 300, "{first}");
    for number in first + 1..first + 10 {
        log.append(&line(number, 100)).unwrap();
        assert!(is_full(&log.write_out().unwrap_err()));
        assert!(is_full(&log.sync().unwrap_err()));
        assert!(is_full(&log.rotate().unwrap_err()));
    }
    let stats = log.stats();
    assert!(stats.is_failing && stats.write_failures >= 28, "{stats:?}");
    assert!(stats.memory_bytes >= 1000, "{stats:?}");
    assert!(is_full(&log.last_error().unwrap()));
    disk.limit(None);
    log.write_out().unwrap();
    log.close().unwrap();
    assert!(!log.stats().is_failing);
    assert_eq!(numbers(&all(&disk)), (0..first + 10).collect::<Vec<_>>());
    assert_eq!(events.count(|event| matches!(event, Event::WriteFailed(_))), 1);
    assert_eq!(events.count(|event| matches!(event, Event::WriteRecovered)), 1);
}

#[test]
fn close_reports_bytes_left_in_memory() {
    let disk = MemoryDisk::default();
    let log = LineLog::open_on(Arc::new(disk.clone()), small(), EventLog::default().environment())
        .unwrap();
    disk.limit(Some(40 << 10));
    let first = fill(&log);
    for _ in 0..2 {
        let closed = log.close();
        assert!(
            matches!(&closed, Err(error @ Error::WriteFailed { bytes, .. })
                if is_full(error) && *bytes == log.stats().memory_bytes && *bytes > 0),
            "{closed:?}"
        );
    }
    let left = log.stats().memory_bytes;
    let found = all(&disk);
    assert_eq!(found.len() as u64 + left, (first + 1) * 100);
    assert_eq!(numbers(&found), (0..found.len() as u64 / 100).collect::<Vec<_>>());
}

#[test]
fn rotation_on_full_disk_removes_expired_file() {
    let disk = MemoryDisk::default();
    let keep = Retention { files_max: Some(3), ..Retention::default() };
    let options = Options { keep, ..small() };
    let log = LineLog::open_on(Arc::new(disk.clone()), options, EventLog::default().environment())
        .unwrap();
    (0..390).for_each(|number| log.append(&line(number, 100)).unwrap());
    log.write_out().unwrap();
    // Simulate that there is no space for another file until a closed file is removed.
    disk.fail(Op::Create, 1, 1, Errno::NOSPC);
    let before = closed(&disk);
    log.append(&line(390, 100)).unwrap();
    assert!(is_full(&log.rotate().unwrap_err()));
    let after = closed(&disk);
    assert_eq!(after[..2], before[1..], "only the oldest is removed");
    log.write_out().unwrap();
    log.close().unwrap();
    assert_eq!(closed(&disk), after);
}

/// Returns the numbers of the lines, and asserts that none is missing between the first and the
/// last.
fn without_gaps(found: &[u8]) -> (u64, u64) {
    let numbers = numbers(found);
    let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
    assert_eq!(numbers, (first..=last).collect::<Vec<_>>());
    (first, last)
}

#[test]
fn oldest_files_are_removed_while_the_disk_is_full() {
    let (disk, events) = (MemoryDisk::default(), EventLog::default());
    let options = Options { full_disk_files_min: Some(2), ..small() };
    let log = LineLog::open_on(Arc::new(disk.clone()), options, events.environment()).unwrap();
    disk.limit(Some(40 << 10));
    for number in 0..2000 {
        log.append(&line(number, 100)).unwrap();
        log.write_out().unwrap();
    }
    let stats = log.stats();
    let is_removal = |event: &Event| matches!(event, Event::RemovedForSpace { bytes: 4000, .. });
    assert_eq!(stats.removed_for_space, events.count(is_removal) as u64);
    assert_eq!((stats.removed, stats.write_failures), (stats.removed_for_space, 0));
    assert!((39..=45).contains(&stats.removed), "{stats:?}");
    log.close().unwrap();
    let (first, last) = without_gaps(&all(&disk));
    assert_eq!((first, last), (stats.removed * 40, 1999));
}

#[test]
fn minimum_of_closed_files_and_the_current_file_are_kept_on_a_full_disk() {
    let disk = MemoryDisk::default();
    let options = Options { full_disk_files_min: Some(3), ..small() };
    let log = open_on(&disk, options);
    for number in 0..280 {
        log.append(&line(number, 100)).unwrap();
        log.write_out().unwrap();
    }
    assert_eq!(closed(&disk).len(), 6);
    // Another program takes the space of each removed file.
    let mut pauses = 0;
    for files in (3..7).rev() {
        disk.limit(Some(0));
        log.append(&line(0, 100)).unwrap();
        assert!(is_full(&log.write_out().unwrap_err()));
        assert_eq!(closed(&disk).len(), files, "one file for each attempt");
        pauses += 1;
    }
    for _ in 0..3 {
        assert!(is_full(&log.write_out().unwrap_err()));
        assert!(is_full(&log.rotate().unwrap_err()));
    }
    assert_eq!((closed(&disk).len(), log.stats().removed_for_space), (3, pauses));
    assert_eq!(numbers(&all(&disk)), (160..280).collect::<Vec<_>>());
    disk.limit(None);
    log.close().unwrap();
    assert_eq!(numbers(&all(&disk)).len(), 124);
}

#[test]
fn full_ext4_removes_oldest_files_and_keeps_the_newest_lines() {
    let Some(image) = LoopImage::new("ext4", 32 << 20) else { return };
    let dir = image.mount().join("log");
    let options = Options {
        file_bytes_max: Some(1 << 20),
        full_disk_files_min: Some(1),
        retry_pause: Duration::from_millis(1),
        keep: Retention { files_max: None, ..Retention::default() },
        ..Options::default()
    };
    let log = open(&dir, options);
    let count = 80 << 20 >> 7;
    (0..count).for_each(|number| log.append(&line(number, 128)).unwrap());
    log.close().unwrap();
    let stats = log.stats();
    assert!(stats.removed_for_space >= 50 && stats.dropped_lines == 0, "{stats:?}");
    let disk = OsDisk::open(&dir).unwrap();
    let (first, last) = without_gaps(&all(&disk));
    assert_eq!(last, count - 1);
    // Only as many files were removed as was necessary.
    assert!((count - first) * 128 > 20 << 20, "{} of {count} lines left", count - first);
}

#[test]
fn full_ext4_loses_no_line() {
    let Some(image) = LoopImage::new("ext4", 32 << 20) else { return };
    let dir = image.mount().join("log");
    let ballast = image.mount().join("ballast");
    fs::write(&ballast, vec![1; 18 << 20]).unwrap();
    let keep = Retention { files_max: None, ..Retention::default() };
    let options = Options {
        file_bytes_max: Some(1 << 20),
        buffer_bytes: 64 << 10,
        retry_pause: Duration::from_millis(1),
        keep,
        ..Options::default()
    };
    let events = EventLog::default();
    let log = Arc::new(LineLog::open(&dir, options.clone(), events.environment()).unwrap());
    let count = 12 << 20 >> 7;
    let appender = std::thread::spawn({
        let log = Arc::clone(&log);
        move || (0..count).for_each(|number| log.append(&line(number, 128)).unwrap())
    });
    // Wait until all buffers are full and an append is waiting.
    eventually("the disk is full", || {
        let stats = log.stats();
        stats.is_failing && stats.waits > 0
    });
    let files = closed(&OsDisk::open(&dir).unwrap());
    fs::remove_file(ballast).unwrap();
    within_a_minute("appending after space was freed", || appender.join().unwrap());
    log.close().unwrap();
    let disk = OsDisk::open(&dir).unwrap();
    assert_eq!(closed(&disk)[..files.len()], files, "a file was removed");
    let found = all(&disk);
    assert_eq!(found.len() as u64, count * 128);
    assert_eq!(numbers(&found), (0..count).collect::<Vec<_>>());
    assert!(
        events.count(|event| matches!(event, Event::WriteFailed(error) if error.is_full())) > 0
    );
    drop(log);
    drop(open(&dir, options));
    assert!(disk.list("").unwrap().contains(&"current".to_owned()));
}
