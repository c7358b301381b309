//! Tests rotation by size, interval and request, and the names of closed files.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use haul_disk::{Disk, Op, Open};
use haul_disk_sim::MemoryDisk;
use haul_line_log::{Environment, LineLog, Options, Schedule};

use crate::{TestClock, all, closed, files, line, numbers, open_on, small};

const HOUR: u64 = 3600;

fn open_at(disk: &MemoryDisk, clock: &Arc<TestClock>, options: Options) -> LineLog {
    let environment = Environment {
        clock: Arc::clone(clock) as Arc<dyn haul_line_log::Clock>,
        ..Environment::default()
    };
    LineLog::open_on(Arc::new(disk.clone()), options, environment).unwrap()
}

fn hourly() -> Options {
    Options { file_times: Some(Schedule::Every(Duration::from_hours(1))), ..small() }
}

/// Appends a line and waits until it is written.
fn append(log: &LineLog, number: u64) {
    log.append(&line(number, 100)).unwrap();
    log.write_out().unwrap();
}

#[test]
fn files_are_closed_at_maximum_size_at_line_end() {
    let disk = MemoryDisk::default();
    let log = open_on(&disk, Options { buffer_bytes: 64 << 10, ..small() });
    (0..500).for_each(|number| log.append(&line(number, 100)).unwrap());
    log.close().unwrap();
    let files = files(&disk);
    let lengths: Vec<usize> = files.iter().map(Vec::len).collect();
    assert_eq!(lengths, [[4000; 12].as_slice(), &[2000]].concat());
    assert_eq!(numbers(&files.concat()), (0..500).collect::<Vec<_>>());
    assert_eq!((log.stats().rotations, log.stats().syncs), (12, 13), "each file is synced once");
    assert_eq!(disk.calls(Op::Sync), 13);
}

#[test]
fn line_longer_than_two_files_is_split() {
    let disk = MemoryDisk::default();
    let log = open_on(&disk, Options { file_bytes_max: Some(16 << 10), ..small() });
    let lines = [line(1, 100), line(2, 99_000), line(3, 100), line(4, 15_000), line(5, 100)];
    lines.iter().for_each(|line| log.append(line).unwrap());
    log.close().unwrap();
    assert_eq!(all(&disk), lines.concat());
    let files = files(&disk);
    assert!(files.iter().all(|file| file.len() <= 32 << 10), "a file exceeds twice the maximum");
    let is_in = |file: &Vec<u8>| file.windows(lines[3].len()).any(|part| part == lines[3]);
    assert!(files.iter().any(is_in), "a line longer than a buffer but not than a file is split");
}

#[test]
fn hourly_rotation_happens_on_the_hour() {
    let (disk, clock) = (MemoryDisk::default(), Arc::new(TestClock::default()));
    clock.set_seconds(10 * HOUR + 1800);
    let log = open_at(&disk, &clock, hourly());
    append(&log, 1);
    clock.set_seconds(11 * HOUR - 1);
    append(&log, 2);
    assert!(closed(&disk).is_empty());
    clock.set_seconds(11 * HOUR);
    append(&log, 3);
    assert_eq!(closed(&disk), ["19700101T110000.000000Z.log"]);
    clock.set_seconds(15 * HOUR + 7);
    append(&log, 4);
    let names = ["19700101T110000.000000Z.log", "19700101T150007.000000Z.log"];
    assert_eq!(closed(&disk), names);
    let contents = files(&disk).iter().map(|file| numbers(file)).collect::<Vec<_>>();
    assert_eq!(contents, [vec![1, 2], vec![3], vec![4]]);
}

#[test]
fn hour_without_lines_creates_no_file() {
    let (disk, clock) = (MemoryDisk::default(), Arc::new(TestClock::default()));
    clock.set_seconds(10 * HOUR);
    let log = open_at(&disk, &clock, hourly());
    append(&log, 1);
    for hour in 11..14 {
        clock.set_seconds(hour * HOUR);
        // Make the background thread check the clock.
        log.sync().unwrap();
        assert_eq!(closed(&disk), ["19700101T110000.000000Z.log"]);
    }
}

#[test]
fn file_of_an_earlier_hour_is_closed_on_reopen() {
    let (disk, clock) = (MemoryDisk::default(), Arc::new(TestClock::default()));
    clock.set_seconds(10 * HOUR);
    let log = open_at(&disk, &clock, hourly());
    append(&log, 1);
    log.close().unwrap();
    for (hour, files) in [(10, 0), (11, 1)] {
        clock.modified_us.store(10 * HOUR * 1_000_000, Ordering::SeqCst);
        clock.set_seconds(hour * HOUR + 5);
        let log = open_at(&disk, &clock, hourly());
        append(&log, hour);
        assert_eq!(closed(&disk).len(), files);
        log.close().unwrap();
    }
    assert_eq!(
        files(&disk).iter().map(|file| numbers(file)).collect::<Vec<_>>(),
        [vec![1, 10], vec![11]]
    );
}

#[test]
fn daily_rotation_happens_at_midnight_of_the_local_clock() {
    let (disk, clock) = (MemoryDisk::default(), Arc::new(TestClock::default()));
    // A zone two hours ahead of UTC, whose clock is set back by an hour at 01:00 UTC of day 1.
    clock.set_zone(vec![(0, 2), (25 * HOUR, 1)]);
    let options = Options { file_times: Some(Schedule::Daily(0)), ..small() };
    let log = open_at(&disk, &clock, options);
    let hours_and_files = [(21, 0), (22, 1), (24, 1), (25, 1), (26, 1), (46, 1), (47, 2), (48, 2)];
    for (hour, files) in hours_and_files {
        clock.set_seconds(hour * HOUR);
        append(&log, hour);
        assert_eq!(closed(&disk).len(), files, "hour {hour}");
    }
    let contents = files(&disk).iter().map(|file| numbers(file)).collect::<Vec<_>>();
    assert_eq!(contents, [vec![21], vec![22, 24, 25, 26, 46], vec![47, 48]]);
}

#[test]
fn requested_rotation_closes_all_earlier_lines() {
    let disk = MemoryDisk::default();
    let log = open_on(&disk, small());
    log.rotate().unwrap();
    assert!(closed(&disk).is_empty(), "an empty file is not closed");
    for number in 0..5 {
        log.append(&line(number, 100)).unwrap();
        log.rotate().unwrap();
        assert_eq!(numbers(&all(&disk)), (0..=number).collect::<Vec<_>>());
        assert_eq!(closed(&disk).len() as u64, number + 1);
    }
    assert_eq!(*files(&disk).last().unwrap(), b"");
}

#[test]
fn incomplete_line_delays_rotation() {
    let (disk, clock) = (MemoryDisk::default(), Arc::new(TestClock::default()));
    clock.set_seconds(10 * HOUR);
    let log = open_at(&disk, &clock, hourly());
    let append = |text: &str| {
        log.append(text.as_bytes()).unwrap();
        log.write_out().unwrap();
        files(&disk).iter().map(|file| String::from_utf8(file.clone()).unwrap()).collect::<Vec<_>>()
    };
    append("whole\nbeg");
    clock.set_seconds(11 * HOUR);
    assert_eq!(append("un"), ["whole\nbegun"]);
    log.rotate().unwrap();
    assert_eq!(append(" and ended\nnext"), ["whole\nbegun and ended\n", "next"]);
    log.rotate().unwrap();
    let next = "next one\n";
    assert_eq!(append(" one\n\n"), ["whole\nbegun and ended\n", next, "\n"]);
}

#[test]
fn clock_set_back_overwrites_no_file_and_names_sort() {
    let (disk, clock) = (MemoryDisk::default(), Arc::new(TestClock::default()));
    // Another program has created a file with the name that the log would choose.
    disk.create("19700101T000100.000002Z.log", Open::default()).unwrap();
    let mut expected = Vec::new();
    for (number, seconds) in [100, 60, 60, 10, 0, 59].into_iter().enumerate() {
        clock.set_seconds(seconds);
        let log = open_at(&disk, &clock, small());
        append(&log, number as u64);
        log.rotate().unwrap();
        expected.push(number as u64);
        assert_eq!(numbers(&all(&disk)), expected);
    }
    assert_eq!(closed(&disk).len(), 7);
}

#[test]
fn rotation_does_not_overwrite_existing_file() {
    let (disk, clock) = (MemoryDisk::default(), Arc::new(TestClock::default()));
    clock.set_seconds(60);
    let log = open_at(&disk, &clock, small());
    disk.create("19700101T000100.000000Z.log", Open::default()).unwrap();
    append(&log, 1);
    log.rotate().unwrap();
    let names = ["19700101T000100.000000Z.log", "19700101T000100.000001Z.log"];
    assert_eq!(closed(&disk), names);
    assert_eq!(files(&disk)[0], b"");
}
