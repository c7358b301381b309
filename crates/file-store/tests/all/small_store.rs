//! The disk usage of a small store, and its growth.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use haul_disk_sim::MemoryDisk;
use haul_file_store::{Options, Store};
use haul_testing::{PrintOnPanic, disk_dir, eventually};

use crate::steady::FullStore;
use crate::{BUCKET, file_names, get, put, random_bytes, small};

const MIB: u64 = 1 << 20;

/// Returns options with which volumes have 4, 8 and then 16 MiB.
fn growing() -> Options {
    Options { volume_bytes: 16 * MIB, ..small() }
}

/// Returns the disk usage of the files below `dir`, like `du`.
fn disk_usage(dir: &Path) -> u64 {
    let entry_bytes = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.unwrap();
        let status = entry.metadata().unwrap();
        let below = if status.is_dir() { disk_usage(&entry.path()) } else { 0 };
        below + status.blocks() * 512
    };
    std::fs::read_dir(dir).unwrap().map(entry_bytes).sum()
}

#[test]
fn new_store_uses_less_than_20_mib() {
    const BYTES_MAX: u64 = 20 << 20;
    let dir = disk_dir();
    let (store, _) = Store::open(dir.path(), Options::default()).unwrap();
    let opened = disk_usage(dir.path());
    store.create_bucket(BUCKET).unwrap();
    for n in 0..100 {
        put(&store, &format!("{n:03}"), &random_bytes(n, 4096));
    }
    let filled = disk_usage(dir.path());
    println!("{opened} bytes after open, {filled} after 100 objects");
    assert!(opened < BYTES_MAX, "{opened}");
    assert!(filled < BYTES_MAX, "{filled}");
    store.close().unwrap();
    let (store, _) = Store::open(dir.path(), Options::default()).unwrap();
    let reopened = disk_usage(dir.path());
    assert!(reopened < BYTES_MAX, "{reopened}");
    assert!(get(&store, "042") == random_bytes(42, 4096));
}

/// Returns the lengths, in mebibytes, of the files in the directory of volumes whose names end with
/// `suffix`, sorted by name.
fn lengths(dir: &Path, suffix: &str) -> Vec<u64> {
    let volumes = dir.join("volumes");
    let names = file_names(&volumes).into_iter().filter(|name| name.ends_with(suffix));
    names.map(|name| volumes.join(name).metadata().unwrap().len() / MIB).collect()
}

#[test]
fn volumes_reach_their_full_length_as_the_store_grows() {
    let dir = disk_dir();
    let (store, _) = Store::open(dir.path(), growing()).unwrap();
    assert_eq!(lengths(dir.path(), ".segment"), [4]);
    store.create_bucket(BUCKET).unwrap();
    let mut store = Some(store);
    for n in 0..1000 {
        put(store.as_ref().unwrap(), &n.to_string(), &random_bytes(n, 60_000));
        if n % 100 == 99 {
            store.take().unwrap().close().unwrap();
            store = Some(Store::open(dir.path(), growing()).unwrap().0);
        }
    }
    let volumes = lengths(dir.path(), ".segment");
    assert!(volumes.len() >= 5, "{volumes:?}");
    let growing = volumes.iter().zip([4, 8].into_iter().chain(std::iter::repeat(16)));
    assert!(growing.into_iter().all(|(volume, expected)| *volume == expected), "{volumes:?}");
    // The short reserve has 1 MiB.
    eventually("the reserve has whole volumes only", || {
        lengths(dir.path(), ".spare") == [1, 16, 16]
    });
    let store = store.unwrap();
    (0..1000).for_each(|n| assert!(get(&store, &n.to_string()) == random_bytes(n, 60_000), "{n}"));
}

#[test]
fn growing_store_frees_space_on_a_full_disk_of_any_size() {
    let mut volumes = Vec::new();
    for limit in [28, 45, 75, 100, 140, 180] {
        let _context = PrintOnPanic(format!("a disk of {limit} MiB"));
        let disk = MemoryDisk::default();
        disk.limit(Some(limit * MIB));
        let open = || Store::open_on(Arc::new(disk.clone()), growing()).unwrap().0;
        let mut full = FullStore::new(&open);
        let stats = full.store().stats();
        volumes.push(stats.volume_bytes / MIB / stats.volumes);
        full.delete_and_compact(8, 32);
        let live = full.live.len() as u64 * 50_000;
        println!("{limit} MiB: {} MiB live in {stats:?}", live / MIB);
    }
    assert!(volumes.is_sorted() && volumes[0] == 4 && volumes[5] > 8, "{volumes:?}");
}

/// The next volumes may be files of removed volumes, which were longer.
#[test]
fn store_continues_after_volumes_were_made_shorter() {
    let dir = disk_dir();
    let keys: Vec<_> = (0..500_u64).map(|n| n.to_string()).collect();
    let contents = |n: usize| random_bytes(n as u64, 60_000);
    let (store, _) = Store::open(dir.path(), growing()).unwrap();
    store.create_bucket(BUCKET).unwrap();
    for _ in 0..2 {
        for (n, key) in keys.iter().enumerate() {
            put(&store, key, &contents(n));
        }
    }
    store.compact().unwrap();
    store.close().unwrap();
    assert!(lengths(dir.path(), ".spare").iter().filter(|length| **length == 16).count() > 2);
    let (store, _) = Store::open(dir.path(), small()).unwrap();
    for (n, key) in keys.iter().enumerate() {
        put(&store, key, &contents(n + 1));
    }
    store.close().unwrap();
    let (store, _) = Store::open(dir.path(), small()).unwrap();
    for (n, key) in keys.iter().enumerate() {
        assert!(get(&store, key) == contents(n + 1), "{key}");
    }
}
