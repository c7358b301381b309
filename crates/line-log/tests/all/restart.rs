//! What the next run finds.

use haul_disk::{Disk, Open, OsDisk, write_full};
use haul_disk_sim::MemoryDisk;
use haul_line_log::{CURRENT, Error, LineLog, Options, Outside};

use crate::{all, closed, disk_dir, line, numbers, open, open_on, small, text};

#[test]
fn the_next_run_appends() {
    let dir = disk_dir();
    let disk = OsDisk::open(dir.path()).unwrap();
    for number in 0..5 {
        let log = open(dir.path(), small());
        log.append(&line(number, 100)).unwrap();
        // The second half are dropped, which is as good.
        if number < 3 {
            log.close().unwrap();
        }
    }
    assert!(closed(&disk).is_empty());
    assert_eq!(numbers(&text(&disk, CURRENT)), [0, 1, 2, 3, 4]);
}

#[test]
fn a_torn_last_line_is_ended_before_the_next_one_begins() {
    let disk = MemoryDisk::default();
    let file = disk.create(CURRENT, Open::default()).unwrap();
    write_full(&*file, b"00000001 whole\n00000002 tor", 0).unwrap();
    drop(open_on(&disk, small()));
    assert_eq!(all(&disk), b"00000001 whole\n00000002 tor", "as long as nothing follows");
    let log = open_on(&disk, small());
    log.append(b"00000003 next\n").unwrap();
    log.close().unwrap();
    assert_eq!(all(&disk), b"00000001 whole\n00000002 tor\n00000003 next\n");
}

#[test]
fn what_ends_without_a_newline_is_not_altered_within_a_run() {
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
fn a_current_file_that_is_too_long_is_closed_first() {
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
fn one_process_has_the_directory() {
    let dir = disk_dir();
    let options = Options { holder: "the first".into(), ..small() };
    let log = LineLog::open(dir.path(), options, Outside::default()).unwrap();
    let second = LineLog::open(dir.path(), small(), Outside::default());
    assert!(matches!(second, Err(Error::InUse { holder, .. }) if holder == "the first"));
    drop(log);
    drop(open(dir.path(), small()));
}

#[test]
fn wrong_options_make_no_directory() {
    let dir = disk_dir();
    let below = dir.path().join("log");
    let options = Options { buffers: 0, ..small() };
    let refused = LineLog::open(&below, options, Outside::default());
    assert!(matches!(refused, Err(Error::Invalid(_))));
    assert!(!below.exists());
}

#[test]
fn a_closed_log_takes_nothing_more() {
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
