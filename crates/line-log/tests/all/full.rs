//! A full disk: nothing is lost, and nothing is removed that is to stay.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use haul_disk::{Disk, Op, OsDisk};
use haul_disk_sim::MemoryDisk;
use haul_line_log::{Error, Event, Keep, LineLog, Options};
use haul_test_image::LoopImage;
use rustix::io::Errno;

use crate::{Told, all, closed, line, numbers, open, small, within_a_minute};

fn is_full(error: &Error) -> bool {
    matches!(error, Error::Stuck { source, .. } if source.is_full())
}

/// Lines of 100 bytes until the disk is full; the number of the first that is not written.
fn fill(log: &LineLog) -> u64 {
    for number in 0.. {
        log.append(&line(number, 100)).unwrap();
        match log.write_out() {
            Ok(()) => {}
            Err(error) if is_full(&error) => return number,
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!("the disk is endless")
}

#[test]
fn what_a_full_disk_refuses_waits_in_memory_and_is_written_once_there_is_room() {
    let (disk, told) = (MemoryDisk::default(), Told::default());
    let log = LineLog::open_on(Arc::new(disk.clone()), small(), told.outside()).unwrap();
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
    assert!(stats.is_stuck && stats.write_failures >= 28, "{stats:?}");
    assert!(stats.memory_bytes >= 1000, "{stats:?}");
    assert!(is_full(&log.last_error().unwrap()));
    disk.limit(None);
    log.write_out().unwrap();
    log.close().unwrap();
    assert!(!log.stats().is_stuck);
    assert_eq!(numbers(&all(&disk)), (0..first + 10).collect::<Vec<_>>());
    assert_eq!(told.count(|event| matches!(event, Event::Stuck(_))), 1, "it is told once");
    assert_eq!(told.count(|event| matches!(event, Event::Unstuck)), 1);
}

#[test]
fn what_is_left_in_memory_when_the_log_is_closed_is_told() {
    let disk = MemoryDisk::default();
    let log = LineLog::open_on(Arc::new(disk.clone()), small(), Told::default().outside()).unwrap();
    disk.limit(Some(40 << 10));
    let first = fill(&log);
    for _ in 0..2 {
        let closed = log.close();
        assert!(
            matches!(&closed, Err(error @ Error::Stuck { bytes, .. })
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
fn the_next_file_takes_the_place_of_an_old_one_that_may_go() {
    let disk = MemoryDisk::default();
    let keep = Keep { files_max: Some(3), ..Keep::default() };
    let options = Options { keep, ..small() };
    let log = LineLog::open_on(Arc::new(disk.clone()), options, Told::default().outside()).unwrap();
    (0..390).for_each(|number| log.append(&line(number, 100)).unwrap());
    log.write_out().unwrap();
    // No room for any more files, until one is removed.
    disk.fail(Op::Create, 1, 1, Errno::NOSPC);
    let before = closed(&disk);
    log.append(&line(390, 100)).unwrap();
    assert!(is_full(&log.rotate().unwrap_err()));
    let after = closed(&disk);
    assert_eq!(after[..2], before[1..], "the oldest went, and only that");
    log.write_out().unwrap();
    log.close().unwrap();
    assert_eq!(closed(&disk), after);
}

#[test]
fn a_real_disk_that_is_full_loses_no_line() {
    let Some(image) = LoopImage::new("ext4", 32 << 20) else { return };
    let dir = image.mount().join("log");
    let ballast = image.mount().join("ballast");
    fs::write(&ballast, vec![1; 18 << 20]).unwrap();
    let keep = Keep { files_max: None, ..Keep::default() };
    let options = Options {
        file_bytes_max: Some(1 << 20),
        buffer_bytes: 64 << 10,
        retry_pause: Duration::from_millis(1),
        keep,
        ..Options::default()
    };
    let told = Told::default();
    let log = Arc::new(LineLog::open(&dir, options.clone(), told.outside()).unwrap());
    let count = 12 << 20 >> 7;
    let bringing = std::thread::spawn({
        let log = Arc::clone(&log);
        move || (0..count).for_each(|number| log.append(&line(number, 128)).unwrap())
    });
    // It goes on until all memory is taken, however long the disk stays full.
    within_a_minute("filling the disk", {
        let log = Arc::clone(&log);
        move || {
            while !(log.stats().is_stuck && log.stats().waits > 0) {
                std::thread::yield_now();
            }
        }
    });
    let files = closed(&OsDisk::open(&dir).unwrap());
    fs::remove_file(ballast).unwrap();
    within_a_minute("a disk with room again", || bringing.join().unwrap());
    log.close().unwrap();
    let disk = OsDisk::open(&dir).unwrap();
    assert_eq!(closed(&disk)[..files.len()], files, "nothing was removed");
    let found = all(&disk);
    assert_eq!(found.len() as u64, count * 128);
    assert_eq!(numbers(&found), (0..count).collect::<Vec<_>>());
    assert!(told.count(|event| matches!(event, Event::Stuck(error) if error.is_full())) > 0);
    drop(log);
    drop(open(&dir, options));
    assert!(disk.list("").unwrap().contains(&"current".to_owned()));
}
