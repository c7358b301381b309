//! Tests the compression of closed files.

use std::fs;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use haul_disk::{Disk, Op, Open, OsDisk, write_full};
use haul_disk_sim::MemoryDisk;
use haul_line_log::{CURRENT, Compression, Event, LineLog, Options, Retention, SyncMode};
use haul_testing::{LoopImage, disk_dir};
use rustix::io::Errno;

use crate::{EventLog, all, closed, line, numbers, open, open_on, small, text};

fn compressing() -> Options {
    Options { compress: Some(Compression::ZSTD), ..small() }
}

/// Returns options with which only the compressing thread syncs, so that a test can block it.
fn compressing_without_sync() -> Options {
    Options { sync: SyncMode::Never, ..compressing() }
}

fn append(log: &LineLog, numbers: std::ops::Range<u64>) {
    numbers.for_each(|number| log.append(&line(number, 100)).unwrap());
    log.write_out().unwrap();
}

/// Returns a line of 128 bytes whose characters are random: it is compressed by about a quarter.
fn noisy_line(number: u64) -> Vec<u8> {
    let mut line = line(number, 128);
    let mut seed = number;
    for byte in &mut line[9..127] {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *byte = 33 + u8::try_from(seed >> 58).unwrap();
    }
    line
}

#[test]
fn closed_files_are_replaced_by_compressed_ones() {
    let dir = disk_dir();
    let log = open(dir.path(), compressing());
    append(&log, 0..500);
    log.wait_for_compression();
    let stats = log.stats();
    log.close().unwrap();
    let disk = OsDisk::open(dir.path()).unwrap();
    let names = closed(&disk);
    assert_eq!(names.len(), 12);
    assert!(names.iter().all(|name| name.ends_with("Z.log.zst")), "{names:?}");
    assert_eq!(disk.list("").unwrap().len(), 14, "LOCK, current and the closed files");
    assert_eq!(numbers(&all(&disk)), (0..500).collect::<Vec<_>>());
    assert_eq!((stats.compressed, stats.compressed_from_bytes), (12, 48_000));
    let packed: u64 = names.iter().map(|name| text(&disk, name).len() as u64).sum();
    assert!(stats.compressed_to_bytes == packed && packed < 12_000, "{stats:?}");
    assert_eq!(stats.compress_failures, 0);
}

#[test]
fn each_level_is_accepted_and_files_of_earlier_runs_are_compressed() {
    let disk = MemoryDisk::default();
    append(&open_on(&disk, small()), 0..100);
    for level in [1, 19] {
        let compress = Some(Compression::Zstd { level });
        let log = open_on(&disk, Options { compress, ..small() });
        append(&log, 100..200);
        log.wait_for_compression();
        assert!(closed(&disk).iter().all(|name| name.ends_with(".zst")));
    }
    let expected: Vec<u64> = (0..200).chain(100..200).collect();
    assert_eq!(numbers(&all(&disk)), expected);
    // Without the option, compressed files stay as they are, and count as closed files.
    let keep = Retention { files_max: Some(3), ..Retention::default() };
    drop(open_on(&disk, Options { keep, ..small() }));
    assert_eq!(closed(&disk).len(), 3);
}

#[test]
fn wait_after_a_rotation_includes_the_rotated_file() {
    let disk = MemoryDisk::default();
    let log = open_on(&disk, compressing());
    for number in 0..200 {
        append(&log, 10 * number..10 * number + 10);
        log.rotate().unwrap();
        log.wait_for_compression();
        assert_eq!(log.stats().compressed, number + 1);
    }
    assert_eq!(numbers(&all(&disk)), (0..2000).collect::<Vec<_>>());
}

#[test]
fn incompressible_file_stays_as_it_is() {
    let (disk, events) = (MemoryDisk::default(), EventLog::default());
    let log =
        LineLog::open_on(Arc::new(disk.clone()), compressing(), events.environment()).unwrap();
    log.append(b"short\n").unwrap();
    log.rotate().unwrap();
    log.wait_for_compression();
    assert_eq!(all(&disk), b"short\n");
    assert!(closed(&disk)[0].ends_with(".log"));
    let is_failure = |event: &Event| matches!(event, Event::CompressFailed(_));
    assert_eq!((log.stats().compressed, events.count(is_failure)), (0, 0));
    log.close().unwrap();
    assert_eq!(disk.list("").unwrap().len(), 2, "a temporary file is left");
}

#[test]
fn failed_compression_is_reported_and_retried_at_the_next_rotation() {
    // The operations of a compression. The first of each kind fails.
    for (op, kind) in [
        (Op::Create, "create"),
        (Op::Write, "write"),
        (Op::Sync, "sync"),
        (Op::Rename, "rename"),
        (Op::SyncDir, "sync the directory"),
    ] {
        let (disk, events) = (MemoryDisk::default(), EventLog::default());
        append(&open_on(&disk, small()), 0..50);
        // The files of the earlier run are synced, and nothing is written but by the compression.
        let options = Options { sync: SyncMode::Never, ..compressing() };
        disk.fail(op, 1, 1, Errno::IO);
        let log = LineLog::open_on(Arc::new(disk.clone()), options, events.environment()).unwrap();
        log.wait_for_compression();
        assert_eq!(log.stats().compress_failures, 1, "{op:?}");
        assert!(log.last_error().unwrap().to_string().contains(kind), "{op:?}");
        assert_eq!(numbers(&all(&disk)[..4000]), (0..40).collect::<Vec<_>>(), "{op:?}");
        append(&log, 50..100);
        log.wait_for_compression();
        assert_eq!((log.stats().compressed, log.stats().compress_failures), (2, 1), "{op:?}");
        log.close().unwrap();
        assert_eq!(numbers(&all(&disk)), (0..100).collect::<Vec<_>>());
        assert_eq!(events.count(|event| matches!(event, Event::CompressFailed(_))), 1);
        assert_eq!(events.count(|event| matches!(event, Event::Compressed { .. })), 2);
    }
}

#[test]
fn file_that_cannot_be_removed_stays_uncompressed() {
    let disk = MemoryDisk::default();
    let log = open_on(&disk, compressing());
    disk.fail(Op::Remove, 1, 1, Errno::ACCESS);
    append(&log, 0..50);
    log.wait_for_compression();
    assert!(closed(&disk)[0].ends_with(".log") && closed(&disk).len() == 1);
    log.close().unwrap();
    let log = open_on(&disk, compressing());
    log.wait_for_compression();
    log.close().unwrap();
    assert!(closed(&disk)[0].ends_with(".zst") && closed(&disk).len() == 1);
    assert_eq!(numbers(&all(&disk)), (0..50).collect::<Vec<_>>());
}

#[test]
fn leftovers_of_an_interrupted_compression_are_removed() {
    let disk = MemoryDisk::default();
    append(&open_on(&disk, small()), 0..50);
    let name = closed(&disk)[0].clone();
    for (end, bytes) in [(".zst.tmp", &b"half"[..]), (".zst", b"not even of the same file")] {
        let file = disk.create(&format!("{name}{end}"), Open::default()).unwrap();
        write_full(&*file, bytes, 0).unwrap();
    }
    let others = ["notes.zst.tmp", "20261121T072314.500000Z.log.gz"];
    others.iter().for_each(|name| drop(disk.create(name, Open::default()).unwrap()));
    drop(open_on(&disk, small()));
    assert_eq!(closed(&disk), [name]);
    assert_eq!(numbers(&all(&disk)), (0..50).collect::<Vec<_>>());
    let left = disk.list("").unwrap();
    assert!(others.iter().all(|name| left.iter().any(|found| found == name)), "{left:?}");
}

#[test]
fn blocked_compression_does_not_block_the_log() {
    let disk = MemoryDisk::default();
    disk.block(Op::Sync);
    let log = open_on(&disk, compressing_without_sync());
    append(&log, 0..50);
    disk.wait_until_blocked();
    append(&log, 50..500);
    log.rotate().unwrap();
    assert_eq!((log.stats().compressed, closed(&disk).len()), (0, 13));
    assert!(closed(&disk).iter().all(|name| name.ends_with(".log")));
    disk.unblock();
    log.wait_for_compression();
    assert_eq!(log.stats().compressed, 13);
    assert_eq!(numbers(&all(&disk)), (0..500).collect::<Vec<_>>());
}

#[test]
fn expired_file_is_removed_while_it_is_compressed() {
    let disk = MemoryDisk::default();
    let keep = Retention { files_max: Some(1), ..Retention::default() };
    let log = Arc::new(open_on(&disk, Options { keep, ..compressing_without_sync() }));
    disk.block(Op::Sync);
    append(&log, 0..50);
    disk.wait_until_blocked();
    let appender = thread::spawn({
        let log = Arc::clone(&log);
        move || append(&log, 50..130)
    });
    disk.unblock();
    appender.join().unwrap();
    log.wait_for_compression();
    assert_eq!(numbers(&all(&disk)), (80..130).collect::<Vec<_>>());
    assert_eq!(disk.list("").unwrap().len(), 2);
    log.close().unwrap();
    assert_eq!(log.stats().removed, 2);
}

#[test]
fn closing_stops_the_compression_and_the_next_run_continues_it() {
    let disk = MemoryDisk::default();
    let log = Arc::new(open_on(&disk, compressing_without_sync()));
    disk.block(Op::Sync);
    append(&log, 0..130);
    disk.wait_until_blocked();
    let closer = thread::spawn({
        let log = Arc::clone(&log);
        move || log.close().unwrap()
    });
    // The wait ends when the other thread closes the log.
    log.wait_for_compression();
    assert!(log.append(b"late\n").is_err());
    disk.unblock();
    closer.join().unwrap();
    assert_eq!(numbers(&all(&disk)), (0..130).collect::<Vec<_>>());
    let names = closed(&disk);
    let compressed = names.iter().filter(|name| name.ends_with(".zst")).count() as u64;
    assert_eq!((log.stats().compressed, names.len()), (compressed, 3));
    let log = open_on(&disk, compressing());
    log.wait_for_compression();
    assert_eq!(log.stats().compressed, 3 - compressed);
    log.close().unwrap();
    assert_eq!(numbers(&all(&disk)), (0..130).collect::<Vec<_>>());
    assert_eq!(disk.list("").unwrap().len(), 4, "a temporary file is left");
}

#[test]
fn directory_with_temporary_files_never_exceeds_bytes_max() {
    let disk = MemoryDisk::default();
    let keep = Retention { files_max: None, bytes_max: Some(30 << 10), age_max: None };
    let log = open_on(&disk, Options { keep, ..compressing() });
    let mut most = 0;
    for number in 0..2000 {
        log.append(&noisy_line(number)).unwrap();
        log.write_out().unwrap();
        if number % 7 == 0 {
            log.wait_for_compression();
        }
        most = most.max(disk.list("").unwrap().iter().map(|name| bytes_of(&disk, name)).sum());
    }
    assert!((22 << 10..=30 << 10).contains(&most), "{most}");
    log.close().unwrap();
    let left = numbers(&all(&disk));
    assert!(left.len() * 128 > 25_000, "compressed files count with their length: {}", left.len());
    assert_eq!(left, (2000 - left.len() as u64..2000).collect::<Vec<_>>());
}

/// Returns the length of a file; 0 if it was removed meanwhile.
fn bytes_of(disk: &dyn Disk, name: &str) -> u64 {
    let read_only = Open { read_only: true, ..Open::default() };
    disk.open(name, read_only).map_or(0, |file| file.bytes().unwrap())
}

#[test]
fn full_ext4_with_compression_keeps_the_newest_lines() {
    let Some(image) = LoopImage::new("ext4", 32 << 20) else { return };
    let dir = image.mount().join("log");
    fs::write(image.mount().join("ballast"), vec![1; 16 << 20]).unwrap();
    let options = Options {
        compress: Some(Compression::Zstd { level: 1 }),
        file_bytes_max: Some(1 << 20),
        full_disk_files_min: Some(1),
        retry_pause: Duration::from_millis(1),
        keep: Retention { files_max: None, ..Retention::default() },
        ..Options::default()
    };
    let log = open(&dir, options);
    let count = 60 << 20 >> 7;
    (0..count).for_each(|number| log.append(&noisy_line(number)).unwrap());
    log.close().unwrap();
    let stats = log.stats();
    assert!(stats.removed_for_space > 10 && stats.dropped_lines == 0, "{stats:?}");
    let disk = OsDisk::open(&dir).unwrap();
    let left = numbers(&all(&disk));
    assert_eq!(left, (count - left.len() as u64..count).collect::<Vec<_>>());
    assert!(left.len() > 5 << 20 >> 7, "{} lines left", left.len());
    assert!(text(&disk, CURRENT).len() <= 1 << 20);
}
