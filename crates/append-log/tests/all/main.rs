//! The log against the real kernel, against faults, and against power cuts.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests, which may fail and speak like them"
)]

mod acts;
mod arbitrary;
mod concurrent;
mod cost;
mod crash;
mod crash_recycling;
mod damage;
mod exact;
mod fault_sweep;
mod faults;
mod history;
mod kill;
mod model;
mod payload;
mod power;
mod promised;
mod recovery;
mod recycled;
mod spares;
mod storage;
mod taking_back;
mod torn;
mod waiting;
mod writing;

use std::ops::Range;
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use haul_append_log::{Log, Options, Position, Recovered, Room, SyncMethod, Ticket};
use haul_disk::{Disk, OsDisk};
use tempfile::TempDir;

/// The shortest segments and buffers, so that a test sees many.
fn small() -> Options {
    Options {
        segment_bytes: 1 << 20,
        buffer_bytes: 64 << 10,
        reserve_bytes: 0,
        sync_method: Some(SyncMethod::Buffered),
        ..Options::default()
    }
}

/// A directory on a disk: the usual temporary directory may well be in disk.
fn disk_dir() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// What opening a log delivered and found.
struct Opened {
    log: Log,
    records: Vec<(Position, Vec<u8>)>,
    recovered: Recovered,
}

fn open_on(disk: Arc<dyn Disk>, options: Options) -> haul_append_log::Result<Opened> {
    let mut records = Vec::new();
    let mut each = |at: Position, payload: &[u8]| records.push((at, payload.to_vec()));
    let (log, recovered) = Log::open(disk, options, &mut each)?;
    assert_eq!(recovered.records, records.len() as u64);
    let lsns: Vec<_> = records.iter().map(|(at, _)| at.lsn).collect();
    assert!(lsns.is_sorted_by(|a, b| a < b), "records are delivered in order, each once");
    Ok(Opened { log, records, recovered })
}

fn try_open(dir: &Path, options: Options) -> haul_append_log::Result<Opened> {
    open_on(Arc::new(OsDisk::open(dir).unwrap()), options)
}

fn open(dir: &Path) -> Opened {
    try_open(dir, small()).unwrap()
}

/// Appends and waits.
fn put(log: &Log, payload: &[u8]) -> Position {
    log.append(&[payload], Room::Ordinary).unwrap().wait().unwrap()
}

/// The ticket of a record whose batch is under way.
fn begun(ticket: Ticket) -> Ticket {
    ticket.begin();
    ticket
}

/// Appends payloads of 30,000 bytes with these numbers, and says where the last one is.
fn put_long(log: &Log, ids: Range<u64>) -> Position {
    ids.map(|id| put(log, &payload::payload(id, 30_000))).fold(None, |_, at| Some(at)).unwrap()
}

/// The files of a log as they are now.
fn copy_of(dir: &Path) -> TempDir {
    let copy = disk_dir();
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    copy
}

/// Runs `body` in a thread of its own and fails where it does not come back.
fn within_a_minute<T: Send + 'static>(what: &str, body: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = mpsc::channel();
    let worker = thread::spawn(move || done.send(body()));
    match wait.recv_timeout(Duration::from_mins(1)) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{what} hangs"),
        Err(mpsc::RecvTimeoutError::Disconnected) => match worker.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(_) => unreachable!("it sends before it ends"),
        },
    }
}

/// Wakes a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future in this thread.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let (mut future, mut context) = (pin!(future), Context::from_waker(&waker));
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
