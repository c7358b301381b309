//! Tests the log as an implementation of [`std::io::Write`].

use std::io::Write;
use std::sync::Arc;
use std::thread;

use haul_disk::{Op, OsDisk};
use haul_disk_sim::MemoryDisk;
use tracing_subscriber::fmt::format::FmtSpan;

use crate::{all, disk_dir, open, open_on, small};

#[test]
fn tracing_subscriber_writes_whole_lines() {
    const EVENTS: usize = 500;
    let dir = disk_dir();
    let log = Arc::new(open(dir.path(), small()));
    let subscriber = tracing_subscriber::fmt()
        .with_writer(Arc::clone(&log))
        .with_ansi(false)
        .without_time()
        .with_span_events(FmtSpan::NONE)
        .finish();
    let dispatch = tracing::Dispatch::new(subscriber);
    thread::scope(|scope| {
        for worker in 0..4 {
            let dispatch = &dispatch;
            scope.spawn(move || {
                tracing::dispatcher::with_default(dispatch, || {
                    for number in 0..EVENTS {
                        tracing::info!(worker, number, "answered");
                    }
                });
            });
        }
    });
    log.close().unwrap();
    let text = String::from_utf8(all(&OsDisk::open(dir.path()).unwrap())).unwrap();
    for worker in 0..4 {
        let end = |number| format!(" INFO all::writers: answered worker={worker} number={number}");
        let prefix = format!("worker={worker} ");
        let found: Vec<&str> = text.lines().filter(|line| line.contains(&prefix)).collect();
        assert_eq!(found, (0..EVENTS).map(end).collect::<Vec<_>>());
    }
    assert_eq!(text.lines().count(), 4 * EVENTS);
}

/// A value formatted in several parts, whose formatting writes a line itself.
struct InParts<'a>(&'a haul_line_log::LineLog);

impl std::fmt::Display for InParts<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(&*self.0, "nested {}", 1).unwrap();
        f.write_str("one ")?;
        f.write_str("two")
    }
}

#[test]
fn formatted_line_is_one_append() {
    let disk = MemoryDisk::default();
    let mut log = open_on(&disk, small());
    writeln!(&log, "{}, {}", InParts(&log), 3).unwrap();
    writeln!(log, "four").unwrap();
    assert_eq!(log.stats().appends, 3);
    log.flush().unwrap();
    assert_eq!(all(&disk), b"nested 1\none two, 3\nfour\n");
}

#[test]
fn many_lines_take_few_writes_and_no_sync() {
    let disk = MemoryDisk::default();
    let options =
        haul_line_log::Options { buffer_bytes: 64 << 10, file_bytes_max: None, ..small() };
    let log = open_on(&disk, options);
    let mut accepted = 0;
    for number in 0..10_000 {
        let line = crate::line(number, 100);
        log.append(&line).unwrap();
        accepted += line.len();
    }
    log.write_out().unwrap();
    // One write per full buffer, one for the last buffer, and a few because lines reach the maximum
    // delay on a slow machine.
    let full = accepted.div_ceil((64 << 10) - 100) as u64;
    assert!(disk.calls(Op::Write) <= full + 8, "{} writes", disk.calls(Op::Write));
    assert_eq!(disk.calls(Op::Sync), 0);
    assert_eq!(log.stats().written_bytes, accepted as u64);
}
