//! Tests of pools of several stores.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers fail like tests")]

mod buckets;
mod crash;
mod events;
mod failing;
mod growth;
mod linearizable;
mod members;
mod objects;
mod old_copies;
mod quotas;
mod refill;
mod refill_crash;
mod restore;
mod restore_crash;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use haul_disk::{Disk, Subdir};
use haul_disk_sim::MemoryDisk;
use haul_file_store::{Attributes, ListRequest, ObjectInfo, Options, Precondition};
use haul_store_pool::{OpenWith, Pool};
use haul_testing::{PATIENCE, noise};

const BUCKET: &str = "bucket";

/// The length of a big object.
const BIG: usize = 70_000;

fn small() -> Options {
    Options {
        volume_bytes: 2 << 20,
        big_object_bytes: 64 << 10,
        index_memory_bytes: 1 << 20,
        lifecycle_check_every: Duration::ZERO,
        ..Options::default()
    }
}

/// Returns directories of a disk, each for a member.
fn dirs(disk: &MemoryDisk, numbers: impl IntoIterator<Item = usize>) -> Vec<Arc<dyn Disk>> {
    let dir = |number: usize| -> Arc<dyn Disk> {
        let name = format!("d{number}");
        disk.create_dir(&name).unwrap();
        disk.sync_dir("").unwrap();
        Arc::new(Subdir::new(Arc::new(disk.clone()), &name))
    };
    numbers.into_iter().map(dir).collect()
}

/// Opens the pool in these directories of a disk.
fn open(disk: &MemoryDisk, numbers: impl IntoIterator<Item = usize>) -> Pool {
    open_at(disk, numbers, 0)
}

/// Opens the pool, and moves keys in the background at this rate.
fn open_at(disk: &MemoryDisk, numbers: impl IntoIterator<Item = usize>, move_rate: u64) -> Pool {
    let with = OpenWith { move_rate, ..OpenWith::default() };
    Pool::open_on(&dirs(disk, numbers), &with, &small()).unwrap().0
}

/// Returns the error of opening these directories.
fn refusal(disk: &MemoryDisk, numbers: impl IntoIterator<Item = usize>) -> String {
    Pool::open_on(&dirs(disk, numbers), &OpenWith::default(), &small()).unwrap_err().to_string()
}

fn put(pool: &Pool, key: &str, bytes: &[u8]) -> ObjectInfo {
    pool.put(BUCKET, key, bytes, &Attributes::new(), &Precondition::None).unwrap()
}

fn get(pool: &Pool, key: &str) -> haul_file_store::Result<Vec<u8>> {
    let object = pool.get(BUCKET, key)?;
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < object.info.bytes {
        bytes.extend_from_slice(&object.read(bytes.len() as u64, 1 << 20)?);
    }
    Ok(bytes)
}

/// Returns a key's content: every eighth object is big.
fn content(number: u64) -> Vec<u8> {
    let bytes = if number.is_multiple_of(8) { BIG } else { 100 };
    noise(number + 1, bytes)
}

fn key(number: u64) -> String {
    format!("dir{}/key{number}", number % 7)
}

/// Stores the objects with these numbers, with several threads that share syncs.
fn fill(pool: &Pool, numbers: std::ops::Range<u64>) {
    let next = std::sync::atomic::AtomicU64::new(numbers.start);
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if !numbers.contains(&number) {
                        break;
                    }
                    put(pool, &key(number), &content(number));
                }
            });
        }
    });
}

/// Lists all keys in pages of `limit`.
fn listed(pool: &Pool, limit: usize) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    loop {
        let after = keys.last().cloned();
        let request = ListRequest { after: after.as_deref(), limit, ..ListRequest::default() };
        let page = pool.list(BUCKET, &request).unwrap();
        keys.extend(page.entries.iter().map(|entry| entry.name().to_owned()));
        if !page.more {
            return keys;
        }
    }
}

/// Checks that the pool has exactly the objects with these numbers.
fn check(pool: &Pool, numbers: std::ops::Range<u64>) {
    let expected: BTreeMap<String, u64> = numbers.map(|number| (key(number), number)).collect();
    assert_eq!(listed(pool, 50), expected.keys().cloned().collect::<Vec<_>>());
    for (key, number) in &expected {
        assert_eq!(get(pool, key).unwrap(), content(*number), "{key}");
    }
    // A key that is being moved counts twice for a moment.
    if pool.move_progress().is_none_or(|progress| progress.slots_left == 0) {
        assert_eq!(pool.bucket(BUCKET).unwrap().objects, expected.len() as u64);
    }
}

/// Waits until no keys are being moved.
fn wait_for_moves(pool: &Pool) {
    let start = Instant::now();
    loop {
        let progress = pool.move_progress().unwrap();
        if progress.slots_left == 0 {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{progress:?}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the number of objects in each member.
fn spread(pool: &Pool) -> Vec<u64> {
    pool.stores().map(|store| store.bucket(BUCKET).map_or(0, |bucket| bucket.objects)).collect()
}
