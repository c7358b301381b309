//! What the device below an ext4 is asked to do.

use std::path::Path;
use std::thread;

use haul_disk::{Device, DeviceCounters, Disk, Open, OsDisk, evict, probe};
use haul_file_store::{ListRequest, Options, Store};
use haul_test_image::LoopImage;

use crate::{BUCKET, get, put, random_bytes};

/// Small objects up to a mebibyte, and not more volumes than the image has space for.
fn options() -> Options {
    Options { volume_bytes: 32 << 20, big_object_bytes: 2 << 20, ..Options::default() }
}

/// A store in the image, with its one volume prepared and nothing left to be written.
fn store_in(image: &LoopImage) -> (Store, Device) {
    let device = probe(image.mount()).unwrap().device.unwrap();
    let (store, _) = Store::open(&image.mount().join("store"), options()).unwrap();
    store.create_bucket(BUCKET).unwrap();
    rustix::fs::syncfs(std::fs::File::open(image.mount()).unwrap()).unwrap();
    (store, device)
}

/// Takes the volumes out of the page cache.
fn make_cold(store: &Path) {
    let volumes = OsDisk::open(store.join("volumes")).unwrap();
    for name in volumes.list("").unwrap() {
        let volume = volumes.open(&name, Open { read_only: true, ..Open::default() }).unwrap();
        evict(&*volume, 0, u64::MAX).unwrap();
    }
}

#[test]
fn a_cold_small_object_is_one_read_of_the_device() {
    const EACH: usize = 16;
    let Some(image) = LoopImage::new("ext4", 192 << 20) else { return };
    let (store, device) = store_in(&image);
    let sizes = [0, 1, 100, 4096, 10_000, 65_536, 100_000, 500_000];
    let key = |size: usize, n: usize| format!("{size}/{n}");
    for n in 0..EACH {
        for size in sizes {
            put(&store, &key(size, n), &random_bytes((size + n) as u64, size));
        }
    }
    for size in sizes {
        for n in 0..EACH {
            make_cold(store.dir());
            let before = DeviceCounters::of(&device).unwrap();
            let bytes = get(&store, &key(size, n));
            let device = DeviceCounters::of(&device).unwrap().since(&before);
            assert_eq!(bytes, random_bytes((size + n) as u64, size));
            assert_eq!(device.reads, 1, "{size} bytes, object {n}: {device:?}");
            let pages = (size as u64 + 4096 + 512).next_multiple_of(4096) + 4096;
            assert!(device.read_bytes <= pages, "{size} bytes, object {n}: {device:?}");
        }
    }
}

#[test]
fn listings_and_what_is_not_there_cost_no_read() {
    let Some(image) = LoopImage::new("ext4", 192 << 20) else { return };
    let (store, device) = store_in(&image);
    for n in 0..1000 {
        put(&store, &format!("{n}"), b"x");
    }
    make_cold(store.dir());
    let (before, stats) = (DeviceCounters::of(&device).unwrap(), store.stats());
    let request = ListRequest { limit: 1000, ..ListRequest::default() };
    assert_eq!(store.list(BUCKET, &request).unwrap().lines.len(), 1000);
    assert_eq!(store.stat(BUCKET, "7").unwrap().bytes, 1);
    assert!(store.get(BUCKET, "missing").is_err());
    assert!(!store.delete(BUCKET, "missing").unwrap());
    let device = DeviceCounters::of(&device).unwrap().since(&before);
    assert_eq!((device.reads, device.syncs), (0, 0), "{device:?}");
    assert_eq!(store.stats().needle_reads, stats.needle_reads);
}

#[test]
fn sixteen_writers_share_one_sync_a_batch() {
    const WRITERS: usize = 16;
    const EACH: usize = 64;
    let Some(image) = LoopImage::new("ext4", 192 << 20) else { return };
    let (store, device) = store_in(&image);
    let (before, stats) = (DeviceCounters::of(&device).unwrap(), store.stats());
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let store = &store;
            // All together less than half a volume, where the next one is made.
            scope.spawn(move || {
                for n in 0..EACH {
                    put(store, &format!("{writer}/{n}"), &random_bytes(n as u64, 4096));
                }
            });
        }
    });
    let device = DeviceCounters::of(&device).unwrap().since(&before);
    let batches = store.stats().log_batches - stats.log_batches;
    let objects = (WRITERS * EACH) as u64;
    println!("{objects} objects, {batches} batches, {device:?}");
    assert_eq!(device.syncs, batches, "one sync for each batch: {device:?}");
    assert_eq!(device.reads, 0, "{device:?}");
    assert!(batches * 2 < objects, "{batches} batches for {objects} objects");
}
