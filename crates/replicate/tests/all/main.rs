//! Tests replicas on an object store in memory that fails as planned, and on simulated disks.
#![expect(clippy::unwrap_used, reason = "test helpers may panic")]

mod faults;
mod faulty;
mod fencing;
mod history;
mod lease;
mod log;
mod reader;
mod releases;
mod standby;
mod store;
mod tier;

use std::sync::Arc;
use std::time::Duration;

use haul_append_log::{Log, Options as LogOptions, Position, SpacePriority, SyncMethod};
use haul_disk::Disk;
use haul_disk_sim::MemoryDisk;
use haul_replicate::{Options, PlainLog, Progress, Remote, Replica, restore_log};
use object_store::ObjectStore;

/// Options of logs with the shortest segments.
fn log_options() -> LogOptions {
    LogOptions {
        segment_bytes: 1 << 20,
        buffer_bytes: 64 << 10,
        reserve_bytes: 0,
        sync_method: Some(SyncMethod::Buffered),
        idle_watermark_ms: 0,
        ..LogOptions::default()
    }
}

/// Options of replicas with small chunks, which ship only on request.
fn options() -> Options {
    Options {
        chunk_bytes: 64 << 10,
        tail_bytes_max: 4 << 10,
        interval: Duration::from_secs(60),
        delete_after: Duration::ZERO,
        ..Options::default()
    }
}

/// A log in memory, and the disk that it is on.
struct TestLog {
    log: Arc<Log>,
    disk: MemoryDisk,
}

impl TestLog {
    fn new() -> Self {
        Self::open(MemoryDisk::default())
    }

    fn open(disk: MemoryDisk) -> Self {
        Self::open_with(disk, log_options())
    }

    fn open_with(disk: MemoryDisk, options: LogOptions) -> Self {
        let mut replay = |_: Position, _: &[u8]| {};
        let (log, _) = Log::open(Arc::new(disk.clone()), options, &mut replay).unwrap();
        Self { log: Arc::new(log), disk }
    }

    fn source(&self) -> PlainLog {
        PlainLog::new(Arc::clone(&self.log), Arc::new(self.disk.clone()))
    }

    fn follow(&self, remote: &Remote) -> haul_replicate::Result<Replica> {
        let progress = Arc::new(Progress::new(haul_testing::PATIENCE));
        Replica::follow_with(self.source(), remote, options(), progress)
    }

    /// Appends a record and waits until it is durable.
    fn put(&self, payload: &[u8]) -> Position {
        self.log.append(&[payload], SpacePriority::Ordinary).unwrap().wait().unwrap()
    }

    /// Appends records with the numbers `range`, of about `bytes` bytes each.
    fn put_numbers(&self, range: std::ops::Range<u64>, bytes: usize) {
        for number in range {
            self.put(&record(number, bytes));
        }
    }
}

/// Returns the payload of a record: its number, repeated.
fn record(number: u64, bytes: usize) -> Vec<u8> {
    number.to_le_bytes().repeat(bytes.div_ceil(8))
}

/// Returns the payloads of the records of a log.
fn records(disk: &MemoryDisk) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    let mut each = |_: Position, payload: &[u8]| records.push(payload.to_vec());
    let (log, _) = Log::open(Arc::new(disk.clone()), log_options(), &mut each).unwrap();
    log.close().unwrap();
    records
}

/// Restores the copy in an object store, and returns the disk with the log.
fn restore(store: Arc<dyn ObjectStore>) -> MemoryDisk {
    let disk = MemoryDisk::default();
    let on: Arc<dyn Disk> = Arc::new(disk.clone());
    restore_log(&Remote::new(store, "copy").unwrap(), &on).unwrap();
    disk
}
