//! Tests that a reopened log continues its files.

use haul_disk::{Disk, Open, OsDisk, write_full};
use haul_disk_sim::MemoryDisk;
use haul_line_log::{CURRENT, Environment, Error, LineLog, Options};

use crate::{all, closed, disk_dir, line, numbers, open, open_on, small, text};

#[test]
fn reopened_log_appends_to_current() {
    let dir = disk_dir();
    let disk = OsDisk::open(dir.path()).unwrap();
    for number in 0..5 {
        let log = open(dir.path(), small());
        log.append(&line(number, 100)).unwrap();
        // Logs 0 to 2 are closed by a call, logs 3 and 4 by dropping them.
        if number < 3 {
            log.close().unwrap();
        }
    }
    assert!(closed(&disk).is_empty());
    assert_eq!(numbers(&text(&disk, CURRENT)), [0, 1, 2, 3, 4]);
}

#[test]
fn torn_last_line_gets_newline_before_next_line() {
    let disk = MemoryDisk::default();
    let file = disk.create(CURRENT, Open::default()).unwrap();
    write_full(&*file, b"00000001 whole\n00000002 tor", 0).unwrap();
    drop(open_on(&disk, small()));
    assert_eq!(all(&disk), b"00000001 whole\n00000002 tor", "unchanged without an append");
    let log = open_on(&disk, small());
    log.append(b"00000003 next\n").unwrap();
    log.close().unwrap();
    assert_eq!(all(&disk), b"00000001 whole\n00000002 tor\n00000003 next\n");
}

#[test]
fn incomplete_lines_are_continued_within_a_run() {
    let disk = MemoryDisk::default();
    let log = open_on(&disk, small());
    for part in [&b"be"[..], b"gun", b" and ended\nbegun", b""] {
        log.append(part).unwrap();
        log.write_out().unwrap();
    }
    log.close().unwrap();
    assert_eq!(all(&disk), b"begun and ended\nbegun");
}

#[test]
fn too_long_current_file_is_closed_first() {
    let disk = MemoryDisk::default();
    let file = disk.create(CURRENT, Open::default()).unwrap();
    let long: Vec<u8> = (0..100).flat_map(|number| line(number, 100)).collect();
    write_full(&*file, &long, 0).unwrap();
    let log = open_on(&disk, small());
    log.append(&line(100, 100)).unwrap();
    log.close().unwrap();
    assert_eq!(closed(&disk).len(), 1);
    assert_eq!(numbers(&text(&disk, CURRENT)), [100]);
}

#[test]
fn second_opener_is_refused_with_the_holder() {
    let dir = disk_dir();
    let options = Options { holder: "the first".into(), ..small() };
    let log = LineLog::open(dir.path(), options, Environment::default()).unwrap();
    let second = LineLog::open(dir.path(), small(), Environment::default());
    assert!(matches!(second, Err(Error::InUse { holder, .. }) if holder == "the first"));
    drop(log);
    drop(open(dir.path(), small()));
}

#[test]
fn invalid_options_create_no_directory() {
    let dir = disk_dir();
    let below = dir.path().join("log");
    let options = Options { buffers: 0, ..small() };
    let refused = LineLog::open(&below, options, Environment::default());
    assert!(matches!(refused, Err(Error::Invalid(_))));
    assert!(!below.exists());
}

#[test]
fn closed_log_refuses_appends() {
    let dir = disk_dir();
    let log = open(dir.path(), small());
    log.append(b"last\n").unwrap();
    log.close().unwrap();
    assert!(matches!(log.append(b"more\n"), Err(Error::Closed)));
    assert!(matches!(log.append(&[b'.'; 100_000]), Err(Error::Closed)));
    assert!(matches!(log.rotate(), Err(Error::Closed)));
    log.write_out().unwrap();
    log.close().unwrap();
    assert_eq!(all(&OsDisk::open(dir.path()).unwrap()), b"last\n");
}
