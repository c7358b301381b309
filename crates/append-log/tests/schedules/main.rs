//! Tests the log under many thread schedules: with any order of its threads and any behaviour of
//! wakers, no thread or future hangs, and every acknowledged record is durable.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "test helpers may panic and print"
)]

#[expect(dead_code, reason = "the tests of other crates use the other functions")]
mod disk;
mod explore;
mod futures;
mod long_records;
mod rotational;
mod tasks;
mod threads;

use std::sync::{Arc, Mutex};

use haul_append_log::{Error, Log, Options, Position, SpacePriority, SyncMethod, segment_name};
use haul_disk::{DeviceKind, scheduled};

use crate::disk::TinyDisk;
use crate::explore::{explore_part, in_threads};

/// Runs `scenario` under many schedules.
fn explore(name: &str, scenario: fn()) {
    explore_part(name, 1, scenario);
}

/// `true` if this record would survive a power cut now.
fn is_durable(disk: &TinyDisk, at: Position, payload: &[u8]) -> bool {
    disk.has_durable(&segment_name(at.lsn.segment()), u64::from(at.lsn.offset()) + 32, payload)
}

/// Records with their positions.
type Records = Vec<(Position, Vec<u8>)>;

/// A log on a small disk, and the records it acknowledged.
#[derive(Clone)]
struct Fixture {
    disk: TinyDisk,
    log: Arc<Log>,
    acknowledged: Arc<Mutex<Records>>,
}

impl Fixture {
    fn new() -> Self {
        Self::with_idle_watermark(100)
    }

    fn with_idle_watermark(idle_watermark_ms: u32) -> Self {
        Self::with(Options { idle_watermark_ms, ..Options::default() })
    }

    /// Creates a log whose first segments are too short for a long record.
    fn growing() -> Self {
        Self::with(Options { first_segment_bytes: Some(80 << 10), ..Options::default() })
    }

    /// Creates a log on a disk on which reads and syncs take turns.
    fn rotational() -> Self {
        Self::on(DeviceKind::Rotational, Options::default())
    }

    fn with(options: Options) -> Self {
        Self::on(DeviceKind::SolidState, options)
    }

    fn on(kind: DeviceKind, options: Options) -> Self {
        let options = Options {
            segment_bytes: 1 << 20,
            buffer_bytes: 64 << 10,
            reserve_bytes: 0,
            sync_method: Some(SyncMethod::Buffered),
            ..options
        };
        let disk = TinyDisk::default();
        let mut replay = |_: Position, _: &[u8]| {};
        let scheduled = scheduled(Arc::new(disk.clone()), Some(kind));
        let (log, _) = Log::open(scheduled, options, &mut replay).unwrap();
        Self { disk, log: Arc::new(log), acknowledged: Arc::default() }
    }

    /// Checks that an acknowledged record is durable, and adds it to `acknowledged`. Returns
    /// `false` if the log has stopped.
    fn note(&self, outcome: Result<Position, Error>, payload: &[u8]) -> bool {
        match outcome {
            Ok(at) => {
                assert!(
                    is_durable(&self.disk, at, payload),
                    "an acknowledged record is not durable"
                );
                self.acknowledged.lock().unwrap().push((at, payload.to_vec()));
                true
            }
            Err(Error::Latched { .. }) => false,
            Err(other) => panic!("{other}"),
        }
    }

    /// Appends a record and waits until it is durable. Returns `false` if the log has stopped.
    fn put(&self, payload: &[u8]) -> bool {
        let ticket = self.log.append(&[payload], SpacePriority::Ordinary);
        self.note(ticket.and_then(haul_append_log::Ticket::wait), payload)
    }

    /// Does the same as [`Fixture::put`] in a future.
    async fn put_async(&self, payload: &[u8]) -> bool {
        let outcome = match self.log.append(&[payload], SpacePriority::Ordinary) {
            Ok(ticket) => ticket.await,
            Err(error) => Err(error),
        };
        self.note(outcome, payload)
    }

    /// Appends a record and drops its ticket.
    fn put_and_forget(&self, payload: &[u8]) {
        drop(self.log.append(&[payload], SpacePriority::Ordinary).unwrap());
    }

    /// Reads `count` records, and waits for each until it is durable.
    fn read(&self, count: usize) {
        let mut reader = self.log.reader(haul_append_log::Lsn::default());
        for _ in 0..count {
            assert!(reader.wait_next(None).unwrap().is_some());
        }
    }

    /// Drops the log, which closes it, and checks that `count` records were acknowledged and are
    /// still durable.
    fn check(self, count: usize) {
        drop(self.log);
        let acknowledged = self.acknowledged.lock().unwrap();
        assert_eq!(acknowledged.len(), count);
        assert!(acknowledged.iter().all(|(at, payload)| is_durable(&self.disk, *at, payload)));
    }
}
