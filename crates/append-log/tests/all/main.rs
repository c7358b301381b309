//! Tests the log on the real kernel, with injected faults and with simulated power cuts.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "test helpers may panic and print"
)]

mod append;
mod arbitrary;
mod batch;
mod call_counts;
mod concurrent;
mod cost;
mod crash;
mod crash_long_records;
mod crash_recycling;
mod damage;
mod durable_end;
mod exchange;
mod fault_sweep;
mod faults;
mod file_systems;
mod growth;
mod hinted;
mod history;
mod in_use;
mod kill;
mod last_record;
mod locked;
mod long_records;
mod long_segments;
mod lost_page;
mod lost_segment;
mod model;
mod operations;
mod padding;
mod payload;
mod pinned;
mod power_cut;
mod promises;
mod read_only;
mod recovery;
mod recycled;
mod releases;
mod segment_bytes;
mod spares;
mod torn;
mod truncation;
mod waiting;
mod watermark;

use std::ops::Range;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use haul_append_log::{Log, Options, Position, Recovered, SpacePriority, SyncMethod, Ticket};
use haul_disk::{Disk, OsDisk};
use haul_testing::{disk_dir, within_a_minute};
use tempfile::TempDir;

/// Returns options with the shortest segments and buffers.
fn small() -> Options {
    Options {
        segment_bytes: 1 << 20,
        buffer_bytes: 64 << 10,
        reserve_bytes: 0,
        sync_method: Some(SyncMethod::Buffered),
        // Tests compare exact numbers of disk calls, so they write watermarks only explicitly.
        idle_watermark_ms: 0,
        ..Options::default()
    }
}

/// An opened log, its records and the result of recovery.
struct OpenedLog {
    log: Log,
    records: Vec<(Position, Vec<u8>)>,
    recovered: Recovered,
}

fn open_on(disk: Arc<dyn Disk>, options: Options) -> haul_append_log::Result<OpenedLog> {
    let mut records = Vec::new();
    let mut each = |at: Position, payload: &[u8]| records.push((at, payload.to_vec()));
    let (log, recovered) = Log::open(disk, options, &mut each)?;
    assert_eq!(recovered.records, records.len() as u64);
    let lsns: Vec<_> = records.iter().map(|(at, _)| at.lsn).collect();
    assert!(lsns.is_sorted_by(|a, b| a < b), "records are out of order or duplicated");
    Ok(OpenedLog { log, records, recovered })
}

fn try_open(dir: &Path, options: Options) -> haul_append_log::Result<OpenedLog> {
    open_on(Arc::new(OsDisk::open(dir).unwrap()), options)
}

fn open(dir: &Path) -> OpenedLog {
    try_open(dir, small()).unwrap()
}

/// Appends a record and waits until it is durable.
fn put(log: &Log, payload: &[u8]) -> Position {
    log.append(&[payload], SpacePriority::Ordinary).unwrap().wait().unwrap()
}

/// Requests the commit of a ticket's batch, and returns the ticket.
fn started(ticket: Ticket) -> Ticket {
    ticket.request_commit();
    ticket
}

/// Appends payloads of 30,000 bytes with these ids, and returns the position of the last one.
fn put_long(log: &Log, ids: Range<u64>) -> Position {
    ids.map(|id| put(log, &payload::payload(id, 30_000))).fold(None, |_, at| Some(at)).unwrap()
}

/// Copies the files of a log.
fn copy_of(dir: &Path) -> TempDir {
    let copy = disk_dir();
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    copy
}

/// A waker that unparks a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread.
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
