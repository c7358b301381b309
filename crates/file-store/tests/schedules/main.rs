//! Tests a whole store under many thread schedules, with its log and its background threads: no
//! caller hangs, a read returns the newest object or a later one, and what was acknowledged survives
//! a power cut.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "test helpers may panic and print"
)]

mod checkpoints;
mod compaction;
#[path = "../../../append-log/tests/schedules/disk.rs"]
#[expect(dead_code, reason = "the tests of other crates use the other functions")]
mod disk;
#[path = "../../../append-log/tests/schedules/explore.rs"]
mod explore;
mod history;
mod versions;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haul_file_store::{Attributes, Options, Precondition, Store, TimeSource};
use haul_sync::shuttle::rand::{Rng, thread_rng};
use haul_sync::shuttle::scheduler::RandomScheduler;
use haul_sync::shuttle::thread::yield_now;

use crate::disk::TinyDisk;

const BUCKET: &str = "bucket";

/// The length of the longest objects, in bytes. A volume has space for 69 of them.
const LONG: usize = 60 << 10;

/// Returns the options of a store with short volumes and without threads that wait for hours. Its
/// clock stands still at this time, in milliseconds.
fn options(time_ms: u64) -> Options {
    Options {
        volume_bytes: 4 << 20,
        big_object_bytes: 64 << 10,
        idle_watermark_ms: 0,
        lifecycle_check_every: Duration::ZERO,
        index_memory_bytes: 1 << 20,
        time: TimeSource::Manual(Arc::new(AtomicU64::new(time_ms))),
        ..Options::default()
    }
}

fn open(disk: &TinyDisk) -> Store {
    open_at(disk, 1)
}

fn open_at(disk: &TinyDisk, time_ms: u64) -> Store {
    Store::open_on(Arc::new(disk.clone()), options(time_ms)).unwrap().0
}

fn put(store: &Store, key: &str, bytes: &[u8]) {
    drop(store.put(BUCKET, key, bytes, &Attributes::new(), &Precondition::None).unwrap());
}

/// Returns the content of an object; `None` if it does not exist.
fn get(store: &Store, key: &str) -> Option<Vec<u8>> {
    match store.get(BUCKET, key) {
        Ok(object) => Some(object.read(0, LONG).unwrap().to_vec()),
        Err(haul_file_store::Error::NoSuchKey { .. }) => None,
        Err(other) => panic!("{key}: {other}"),
    }
}

/// Lets other threads run for a random number of steps, up to `max`.
fn pause(max: u32) {
    (0..thread_rng().gen_range(0..=max)).for_each(|_| yield_now());
}

/// Returns the disk that `fill` has filled, in one schedule: each schedule of a test begins with a
/// copy of it.
fn prepare(fill: fn(&Store)) -> TinyDisk {
    let prepared = Arc::new(Mutex::new(None));
    let result = Arc::clone(&prepared);
    let body = move || {
        let disk = TinyDisk::default();
        let store = open(&disk);
        store.create_bucket(BUCKET).unwrap();
        fill(&store);
        store.write_checkpoint().unwrap();
        store.close().unwrap();
        *result.lock().unwrap() = Some(disk.after_power_cut());
    };
    explore::run(RandomScheduler::new(1), body);
    prepared.lock().unwrap().take().unwrap()
}
