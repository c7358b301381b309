//! Tests the log under many thread schedules: with any order of its threads and any behaviour of
//! wakers, no thread or future hangs, and every acknowledged record is durable.
//!
//! The environment variable `HAUL_SCHEDULES` sets the number of schedules of each test. A failed
//! test prints its schedule. To repeat it, run this test with the schedule in `HAUL_SCHEDULE`.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "test helpers may panic and print"
)]

mod disk;
mod futures;
mod long_records;
mod tasks;
mod threads;

use std::sync::{Arc, Mutex};

use haul_append_log::{Error, Log, Options, Position, Room, SyncMethod};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};

use crate::disk::TinyDisk;

/// The number of schedules of each test if `HAUL_SCHEDULES` is not set.
const SCHEDULES: usize = 1000;

/// The number of times that [`PctScheduler`] changes the priorities of threads in a schedule. Most
/// concurrency bugs appear after two or three changes.
const PRIORITY_CHANGES: usize = 3;

/// Runs `scenario` under random schedules. In half of them the next thread is chosen by random
/// priorities, in the others at random at each step.
fn explore(name: &str, scenario: fn()) {
    explore_part(name, 1, scenario);
}

/// Runs `scenario` like [`explore`], but under `cost` times fewer schedules, for long scenarios.
fn explore_part(name: &str, cost: usize, scenario: fn()) {
    if let Ok(schedule) = std::env::var("HAUL_SCHEDULE") {
        return shuttle::replay(scenario, &schedule);
    }
    let all = std::env::var("HAUL_SCHEDULES").ok().map_or(SCHEDULES, |text| text.parse().unwrap());
    let each = all.div_ceil(2 * cost);
    run(RandomScheduler::new(each), scenario);
    run(PctScheduler::new(PRIORITY_CHANGES, each), scenario);
    println!("{name}: {} schedules", 2 * each);
}

fn run(scheduler: impl Scheduler + 'static, scenario: fn()) {
    let mut config = Config::new();
    config.failure_persistence = FailurePersistence::Print;
    config.max_steps = MaxSteps::FailAfter(200_000);
    config.stack_size = 1 << 18;
    Runner::new(scheduler, config).run(scenario);
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

    fn with(options: Options) -> Self {
        let options = Options {
            segment_bytes: 1 << 20,
            buffer_bytes: 64 << 10,
            reserve_bytes: 0,
            sync_method: Some(SyncMethod::Buffered),
            ..options
        };
        let disk = TinyDisk::default();
        let mut replay = |_: Position, _: &[u8]| {};
        let (log, _) = Log::open(Arc::new(disk.clone()), options, &mut replay).unwrap();
        Self { disk, log: Arc::new(log), acknowledged: Arc::default() }
    }

    /// Checks that an acknowledged record is durable, and adds it to `acknowledged`. Returns
    /// `false` if the log has stopped.
    fn note(&self, outcome: Result<Position, Error>, payload: &[u8]) -> bool {
        match outcome {
            Ok(at) => {
                assert!(self.disk.is_durable(at, payload), "an acknowledged record is not durable");
                self.acknowledged.lock().unwrap().push((at, payload.to_vec()));
                true
            }
            Err(Error::Latched { .. }) => false,
            Err(other) => panic!("{other}"),
        }
    }

    /// Appends a record and waits until it is durable. Returns `false` if the log has stopped.
    fn put(&self, payload: &[u8]) -> bool {
        let ticket = self.log.append(&[payload], Room::Ordinary);
        self.note(ticket.and_then(haul_append_log::Ticket::wait), payload)
    }

    /// Does the same as [`Fixture::put`] in a future.
    async fn put_async(&self, payload: &[u8]) -> bool {
        let outcome = match self.log.append_async(&[payload], Room::Ordinary).await {
            Ok(ticket) => ticket.await,
            Err(error) => Err(error),
        };
        self.note(outcome, payload)
    }

    /// Appends a record and drops its ticket.
    fn put_and_forget(&self, payload: &[u8]) {
        drop(self.log.append(&[payload], Room::Ordinary).unwrap());
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
        assert!(acknowledged.iter().all(|(at, payload)| self.disk.is_durable(*at, payload)));
    }
}

/// Runs each body in a thread whose switches `shuttle` schedules, and joins the threads.
fn in_threads(bodies: Vec<Box<dyn FnOnce() + Send>>) {
    let threads: Vec<_> = bodies.into_iter().map(shuttle::thread::spawn).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
