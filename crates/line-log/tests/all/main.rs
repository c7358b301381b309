//! Tests of the line log on the real kernel and with faults, full disks and power cuts.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers may panic")]

mod compression;
mod crash;
mod faults;
mod full;
mod kill;
mod policies;
mod reading;
mod restart;
mod retention;
mod rotation;
mod threads;
mod writers;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use haul_disk::{Disk, File, Open, read_full};
use haul_line_log::{
    CURRENT, Clock, CopyReport, Environment, Error, Event, LineLog, Options, Retention, TimeRange,
    copy_lines_on,
};
use haul_testing::{disk_dir, within_a_minute};

/// Returns options with small buffers and files, and without removal of closed files.
fn small() -> Options {
    Options {
        buffer_bytes: 4 << 10,
        buffers: 2,
        file_bytes_max: Some(4 << 10),
        keep: Retention { files_max: None, ..Retention::default() },
        retry_pause: Duration::from_hours(1),
        ..Options::default()
    }
}

fn open(dir: &Path, options: Options) -> LineLog {
    // A child forked by another test holds all locks of this process until its `exec`.
    for _ in 0..100_000 {
        match LineLog::open(dir, options.clone(), Environment::default()) {
            Err(Error::InUse { .. }) => thread::yield_now(),
            opened => return opened.unwrap(),
        }
    }
    panic!("the lock is never released")
}

fn open_on(disk: &(impl Disk + Clone + 'static), options: Options) -> LineLog {
    LineLog::open_on(Arc::new(disk.clone()), options, Environment::default()).unwrap()
}

/// A clock, a time zone and a modification time that the test sets. The zone is UTC by default.
#[derive(Debug, Default)]
struct TestClock {
    now_us: AtomicU64,
    modified_us: AtomicU64,
    /// The times in seconds from which on local time is ahead of UTC by a number of hours.
    zone: Mutex<Vec<(u64, i64)>>,
}

impl TestClock {
    fn set_seconds(&self, seconds: u64) {
        self.now_us.store(seconds * 1_000_000, Ordering::SeqCst);
    }

    fn set_zone(&self, zone: Vec<(u64, i64)>) {
        *self.zone.lock().unwrap() = zone;
    }
}

impl Clock for TestClock {
    fn now_us(&self) -> u64 {
        self.now_us.load(Ordering::SeqCst)
    }

    fn modified_us(&self, _: &dyn File) -> Option<u64> {
        Some(self.modified_us.load(Ordering::SeqCst))
    }

    fn local_offset(&self, utc: i64) -> i64 {
        let zone = self.zone.lock().unwrap();
        let past = zone.iter().rfind(|(from, _)| i64::try_from(*from).unwrap() <= utc);
        past.map_or(0, |(_, hours)| hours * 3600)
    }
}

/// The events reported by the background thread.
#[derive(Debug, Clone, Default)]
struct EventLog(Arc<Mutex<Vec<Event>>>);

impl EventLog {
    fn environment(&self) -> Environment {
        let events = Arc::clone(&self.0);
        let on_event = move |event: &Event| events.lock().unwrap().push(event.clone());
        Environment { on_event: Box::new(on_event), ..Environment::default() }
    }

    fn count(&self, matches: impl Fn(&Event) -> bool) -> usize {
        self.0.lock().unwrap().iter().filter(|event| matches(event)).count()
    }
}

/// Returns the names of the closed files, oldest first.
fn closed(disk: &dyn Disk) -> Vec<String> {
    let is_closed = |name: &String| {
        let name = name.trim_end_matches(".zst");
        name.ends_with("Z.log") || name.ends_with("Z.unsynced")
    };
    disk.list("").unwrap().into_iter().filter(is_closed).collect()
}

fn text(disk: &dyn Disk, name: &str) -> Vec<u8> {
    let file = disk.open(name, Open { read_only: true, ..Open::default() }).unwrap();
    let mut bytes = vec![0; usize::try_from(file.bytes().unwrap()).unwrap()];
    let read = read_full(&*file, &mut bytes, 0).unwrap();
    assert_eq!(read, bytes.len());
    bytes
}

/// Returns the content of each file, decompressed, oldest first, the current one last.
fn files(disk: &dyn Disk) -> Vec<Vec<u8>> {
    let mut names = closed(disk);
    if disk.list("").unwrap().iter().any(|name| name == CURRENT) {
        names.push(CURRENT.to_owned());
    }
    let content = |name: &String| match text(disk, name) {
        bytes if name.ends_with(".zst") => zstd::decode_all(&*bytes).unwrap(),
        bytes => bytes,
    };
    names.iter().map(content).collect()
}

fn all(disk: &dyn Disk) -> Vec<u8> {
    files(disk).concat()
}

/// Reads all lines as `haul log show` does.
fn read_all(disk: &dyn Disk, to: &mut Vec<u8>) -> CopyReport {
    let mut sink = |_file: &str, lines: &[u8]| {
        to.extend_from_slice(lines);
        true
    };
    copy_lines_on(disk, TimeRange::default(), &TestClock::default(), &mut sink).unwrap()
}

/// Returns a line that begins with `number`, `bytes` long with its newline.
fn line(number: u64, bytes: usize) -> Vec<u8> {
    let mut line = format!("{number:08} ").into_bytes();
    line.resize(bytes.max(10) - 1, b'.');
    line.push(b'\n');
    line
}

/// Returns the numbers of the complete lines.
fn numbers(text: &[u8]) -> Vec<u64> {
    let lines = text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    lines.filter_map(|line| str::from_utf8(line.get(..8)?).ok()?.parse().ok()).collect()
}
