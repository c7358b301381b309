//! All memory is taken because the disk is slow.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use haul_disk::Op;
use haul_disk_sim::MemoryDisk;
use haul_line_log::{LineLog, Options, WhenFull};

use crate::{all, line, numbers, open_on, small, within_a_minute};

/// A log whose background thread stands before the gate with line 0.
fn behind_a_gate(when_full: WhenFull) -> (MemoryDisk, Arc<LineLog>) {
    let disk = MemoryDisk::default();
    let options =
        Options { when_full, file_bytes_max: None, late_max: Duration::from_millis(1), ..small() };
    let log = Arc::new(open_on(&disk, options));
    disk.shut(Op::Write);
    log.append(&line(0, 64)).unwrap();
    disk.somebody_waits();
    (disk, log)
}

#[test]
fn who_brings_a_line_waits_until_there_is_room() {
    let (disk, log) = behind_a_gate(WhenFull::Wait);
    let taken = Arc::new(AtomicU64::new(0));
    let bringing = thread::spawn({
        let (log, taken) = (Arc::clone(&log), Arc::clone(&taken));
        move || {
            for number in 1..1000 {
                log.append(&line(number, 64)).unwrap();
                taken.store(number, Ordering::SeqCst);
            }
        }
    });
    // The other buffer takes 64 lines; then it waits, as the log itself counts.
    while log.stats().waits == 0 {
        thread::yield_now();
    }
    assert_eq!(taken.load(Ordering::SeqCst), 64);
    assert_eq!(log.stats().memory_bytes, 65 * 64);
    disk.open_gate();
    bringing.join().unwrap();
    log.close().unwrap();
    assert_eq!(numbers(&all(&disk)), (0..1000).collect::<Vec<_>>());
}

#[test]
fn dropped_lines_are_counted_and_the_log_says_where_they_are_missing() {
    let (disk, log) = behind_a_gate(WhenFull::DropNewest);
    let bring = |numbers: std::ops::Range<u64>| {
        numbers.for_each(|number| log.append(&line(number, 64)).unwrap());
    };
    // 64 of these fit into the other buffer.
    bring(1..100);
    assert_eq!((log.stats().dropped_lines, log.stats().dropped_bytes), (35, 35 * 64));
    log.append(&[line(100, 64), line(101, 64), b"unended".to_vec()].concat()).unwrap();
    log.append(&line(102, 10_000)).unwrap();
    assert_eq!(log.stats().dropped_lines, 39);
    assert_eq!(log.stats().appends, 65);
    disk.open_gate();
    log.write_out().unwrap();
    bring(200..210);
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
fn lines_dropped_last_are_told_by_closing() {
    let (disk, log) = behind_a_gate(WhenFull::DropNewest);
    (1..100).for_each(|number| log.append(&line(number, 64)).unwrap());
    disk.open_gate();
    log.close().unwrap();
    let text = String::from_utf8(all(&disk)).unwrap();
    assert_eq!(text.matches("35 lines").count(), 1, "{}", text.lines().last().unwrap());
    assert_eq!(numbers(text.as_bytes()), (0..65).collect::<Vec<_>>());
}

#[test]
fn closing_ends_the_waiting_with_an_error() {
    let (disk, log) = behind_a_gate(WhenFull::Wait);
    let bringing = thread::spawn({
        let log = Arc::clone(&log);
        move || (1..1000).find_map(|number| log.append(&line(number, 64)).err().map(|_| number))
    });
    while log.stats().waits == 0 {
        thread::yield_now();
    }
    let closing = thread::spawn({
        let log = Arc::clone(&log);
        move || log.close()
    });
    let refused = within_a_minute("a waiting line", || bringing.join().unwrap());
    assert_eq!(refused, Some(65));
    disk.open_gate();
    within_a_minute("closing", || closing.join().unwrap()).unwrap();
    assert_eq!(numbers(&all(&disk)), (0..65).collect::<Vec<_>>());
}

#[test]
fn a_line_is_written_when_it_is_late_though_nobody_asks() {
    let disk = MemoryDisk::default();
    let log = open_on(&disk, Options { late_max: Duration::from_millis(1), ..small() });
    for number in 0..20 {
        disk.shut(Op::Write);
        log.append(&line(number, 64)).unwrap();
        within_a_minute("the background thread", {
            let disk = disk.clone();
            move || disk.somebody_waits()
        });
        disk.open_gate();
        log.write_out().unwrap();
    }
}
