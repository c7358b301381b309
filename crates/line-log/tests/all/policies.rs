//! Tests appends while all buffers are full because the disk is slow.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use haul_disk::Op;
use haul_disk_sim::MemoryDisk;
use haul_line_log::{LineLog, Options, WhenFull};
use haul_testing::eventually;

use crate::{all, line, numbers, open_on, small, within_a_minute};

/// Opens a log whose background thread is blocked in the write of line 0.
fn open_blocked(when_full: WhenFull) -> (MemoryDisk, Arc<LineLog>) {
    let disk = MemoryDisk::default();
    let options = Options {
        when_full,
        file_bytes_max: None,
        write_delay_max: Duration::from_millis(1),
        ..small()
    };
    let log = Arc::new(open_on(&disk, options));
    disk.block(Op::Write);
    log.append(&line(0, 64)).unwrap();
    disk.wait_until_blocked();
    (disk, log)
}

#[test]
fn append_waits_for_a_free_buffer() {
    let (disk, log) = open_blocked(WhenFull::Wait);
    let accepted = Arc::new(AtomicU64::new(0));
    let appender = thread::spawn({
        let (log, accepted) = (Arc::clone(&log), Arc::clone(&accepted));
        move || {
            for number in 1..1000 {
                log.append(&line(number, 64)).unwrap();
                accepted.store(number, Ordering::SeqCst);
            }
        }
    });
    // Line 0 occupies one of the two buffers, and 64 lines fill the other. The next append waits.
    eventually("an append waits", || log.stats().waits > 0);
    assert_eq!(accepted.load(Ordering::SeqCst), 64);
    assert_eq!(log.stats().memory_bytes, 65 * 64);
    disk.unblock();
    appender.join().unwrap();
    log.close().unwrap();
    assert_eq!(numbers(&all(&disk)), (0..1000).collect::<Vec<_>>());
}

#[test]
fn dropped_lines_are_counted_and_noted_in_the_log() {
    let (disk, log) = open_blocked(WhenFull::DropNewest);
    let append = |numbers: std::ops::Range<u64>| {
        numbers.for_each(|number| log.append(&line(number, 64)).unwrap());
    };
    // Line 0 occupies one of the two buffers; 64 of these lines fit into the other.
    append(1..100);
    assert_eq!((log.stats().dropped_lines, log.stats().dropped_bytes), (35, 35 * 64));
    log.append(&[line(100, 64), line(101, 64), b"unended".to_vec()].concat()).unwrap();
    log.append(&line(102, 10_000)).unwrap();
    assert_eq!(log.stats().dropped_lines, 39);
    assert_eq!(log.stats().appends, 65);
    disk.unblock();
    log.write_out().unwrap();
    append(200..210);
    log.close().unwrap();
    let text = String::from_utf8(all(&disk)).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 65 + 1 + 10);
    let dropped =
        format!("line-log: 39 lines ({} bytes) were dropped here: ", 37 * 64 + 7 + 10_000);
    assert!(lines[65].starts_with(&dropped), "{}", lines[65]);
    assert_eq!(numbers(text.as_bytes()), (0..65).chain(200..210).collect::<Vec<_>>());
    assert_eq!(log.stats().written_bytes, text.len() as u64);
}

#[test]
fn close_writes_the_note_of_dropped_lines() {
    let (disk, log) = open_blocked(WhenFull::DropNewest);
    (1..100).for_each(|number| log.append(&line(number, 64)).unwrap());
    disk.unblock();
    log.close().unwrap();
    let text = String::from_utf8(all(&disk)).unwrap();
    assert_eq!(text.matches("35 lines").count(), 1, "{}", text.lines().last().unwrap());
    assert_eq!(numbers(text.as_bytes()), (0..65).collect::<Vec<_>>());
}

#[test]
fn close_fails_waiting_appends() {
    let (disk, log) = open_blocked(WhenFull::Wait);
    let appender = thread::spawn({
        let log = Arc::clone(&log);
        move || (1..1000).find_map(|number| log.append(&line(number, 64)).err().map(|_| number))
    });
    eventually("an append waits", || log.stats().waits > 0);
    let closing = thread::spawn({
        let log = Arc::clone(&log);
        move || log.close()
    });
    let refused = within_a_minute("a waiting append", || appender.join().unwrap());
    assert_eq!(refused, Some(65));
    disk.unblock();
    within_a_minute("closing", || closing.join().unwrap()).unwrap();
    assert_eq!(numbers(&all(&disk)), (0..65).collect::<Vec<_>>());
}

#[test]
fn lines_are_written_within_the_maximum_delay() {
    let disk = MemoryDisk::default();
    let log = open_on(&disk, Options { write_delay_max: Duration::from_millis(1), ..small() });
    for number in 0..20 {
        disk.block(Op::Write);
        log.append(&line(number, 64)).unwrap();
        within_a_minute("the background thread", {
            let disk = disk.clone();
            move || disk.wait_until_blocked()
        });
        disk.unblock();
        log.write_out().unwrap();
    }
}
