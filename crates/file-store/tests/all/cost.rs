//! The requests that reach the disk, counted by the kernel on a loop device of the test.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use haul_disk::{Device, DeviceCounters, Disk, Open, OsDisk, PAGE_BYTES, evict, probe};
use haul_file_store::{Attributes, Error, ListRequest, NewObject, Options, Precondition, Store};
use haul_testing::LoopImage;

use crate::{BUCKET, content, put, random_bytes};

/// The longest request that the kernel certainly sends to a loop device for a cached read: a queue
/// entry has 128 segments of memory, which are single pages if the memory is fragmented.
const REQUEST_BYTES_MAX: u64 = 128 * PAGE_BYTES as u64;

/// A store on a loop device of its own.
struct Bench {
    store: Store,
    device: Device,
    image: LoopImage,
}

impl Bench {
    fn new() -> Option<Self> {
        let image = LoopImage::new("ext4", 512 << 20)?;
        let device = probe(image.mount()).unwrap().device.unwrap();
        let store = Self::open(&image);
        store.create_bucket(BUCKET).unwrap();
        // After reopening, the volume is in the manifest.
        store.close().unwrap();
        let store = Self::open(&image);
        Some(Self { store, device, image })
    }

    fn open(image: &LoopImage) -> Store {
        // Postpones background writes, which are not counted.
        let index_write_every = Duration::from_hours(1);
        let options = Options { index_write_every, idle_watermark_ms: 0, ..Options::default() };
        Store::open(&image.mount().join("store"), options).unwrap().0
    }

    /// Evicts the volumes from the page cache.
    fn evict(&self) {
        let volumes = OsDisk::open(self.image.mount().join("store/volumes")).unwrap();
        for name in volumes.list("").unwrap() {
            let file = volumes.open(&name, Open { read_only: true, ..Open::default() }).unwrap();
            evict(&*file, 0, u64::MAX).unwrap();
        }
    }

    /// Waits until the background work of the store ends, such as preparing the next volumes.
    fn wait_until_idle(&self) {
        let counters = || DeviceCounters::of(&self.device).unwrap();
        let mut before = counters();
        loop {
            thread::sleep(Duration::from_secs(1));
            let (now, since) = (counters(), counters().since(&before));
            if (since.reads, since.writes) == (0, 0) {
                return;
            }
            before = now;
        }
    }

    fn count<T>(&self, work: impl FnOnce() -> T) -> (T, DeviceCounters) {
        self.image.settle();
        let before = DeviceCounters::of(&self.device).unwrap();
        let result = work();
        self.image.settle();
        let mut counted = DeviceCounters::of(&self.device).unwrap().since(&before);
        // The kernel counts the bytes of a request slightly before the request.
        while counted.reads == 0 && counted.read_bytes > 0 {
            thread::yield_now();
            counted = DeviceCounters::of(&self.device).unwrap().since(&before);
        }
        (result, counted)
    }
}

#[test]
fn cold_small_object_is_one_request() {
    let Some(bench) = Bench::new() else { return };
    let lengths =
        [0, 100, 1000, 4096, 10_000, 65_536, 131_072, 300_000, 500_000, 1_000_000, 1 << 20];
    for length in lengths {
        for copy in 0..3 {
            put(&bench.store, &format!("{length}/{copy}"), &random_bytes(1, length));
        }
    }
    bench.wait_until_idle();
    for length in lengths {
        for copy in 0..3 {
            let key = format!("{length}/{copy}");
            bench.evict();
            let needles = bench.store.stats().needle_reads;
            let (object, counted) = bench.count(|| bench.store.get(BUCKET, &key).unwrap());
            assert_eq!(bench.store.stats().needle_reads - needles, 1);
            assert!(content(&object).unwrap() == random_bytes(1, length));
            // A needle starts at any offset in a page; about 150 bytes precede the content.
            let pages = (length + 150).div_ceil(PAGE_BYTES) as u64;
            let bytes = pages * PAGE_BYTES as u64;
            let page = PAGE_BYTES as u64;
            if length >= 256 << 10 {
                // The length of such a long object is not known before its head is read.
                let most = 1 + (bytes + page).div_ceil(REQUEST_BYTES_MAX);
                assert!(counted.reads <= most, "{length} bytes: {counted:?}");
            } else if bytes + page <= REQUEST_BYTES_MAX {
                assert_eq!(counted.reads, 1, "{length} bytes: {counted:?}");
            } else {
                let longest = (bytes + page).div_ceil(REQUEST_BYTES_MAX);
                assert!(counted.reads <= longest, "{length} bytes: {counted:?}");
            }
            // The location contains only the length class, which is at most twice the length.
            let most = (2 * bytes).max(bytes + 2 * page);
            assert!((bytes..=most).contains(&counted.read_bytes), "{length}: {counted:?}");

            bench.evict();
            let (_, counted) = bench.count(|| bench.store.head(BUCKET, &key).unwrap());
            assert_eq!(counted.reads, 1, "the head of {length} bytes: {counted:?}");
            assert!(counted.read_bytes <= 2 * page, "{counted:?}");
        }
    }
}

#[test]
fn only_cached_object_is_returned_without_a_request() {
    let Some(bench) = Bench::new() else { return };
    let (store, lengths) = (&bench.store, [0, 100, 5000, 65_536, 131_072]);
    for length in lengths {
        put(store, &length.to_string(), &random_bytes(length as u64, length));
    }
    for length in [600_000, 2_000_000] {
        put(store, &length.to_string(), &random_bytes(1, length));
    }
    bench.wait_until_idle();
    for length in lengths {
        let (key, bytes) = (length.to_string(), random_bytes(length as u64, length));
        bench.evict();
        let ((cold, object), counted) = bench
            .count(|| (store.get_cached(BUCKET, &key).unwrap(), store.get(BUCKET, &key).unwrap()));
        assert!(cold.is_none() && content(&object).unwrap() == bytes);
        // The first call starts to read ahead, and the second one waits for the bytes.
        assert!((1..=2).contains(&counted.reads), "{length} bytes: {counted:?}");
        let gets = store.stats().gets;
        let (hot, counted) = bench.count(|| store.get_cached(BUCKET, &key).unwrap());
        assert_eq!((counted.reads, store.stats().gets - gets), (0, 1), "{length} bytes");
        assert!(content(&hot.expect("the object was just read")).unwrap() == bytes);
        let place = store.location(BUCKET, &key).unwrap();
        assert!(store.open_bytes_max_at(place) >= length as u64);
        let (at, counted) = bench.count(|| store.get_cached_at(BUCKET, &key, place));
        assert_eq!(
            (at.map(|object| content(&object).unwrap() == bytes), counted.reads),
            (Some(true), 0)
        );
        // The record of another key.
        assert!(store.get_cached_at(BUCKET, "missing", place).is_none());
        let head = store.head_cached(BUCKET, &key).unwrap().expect("the object was just read");
        assert_eq!(head.info, store.head(BUCKET, &key).unwrap().info);
    }
    bench.evict();
    assert!(store.head_cached(BUCKET, "100").unwrap().is_none());
    for (length, is_returned) in [(600_000, true), (2_000_000, false)] {
        let key = length.to_string();
        assert!(store.get_cached(BUCKET, &key).unwrap().is_none(), "the object is not cached");
        let bytes = content(&store.get(BUCKET, &key).unwrap()).unwrap();
        let (cached, counted) = bench.count(|| store.get_cached(BUCKET, &key).unwrap());
        assert_eq!((cached.is_some(), counted.reads), (is_returned, 0), "{length} bytes");
        assert!(cached.is_none_or(|object| content(&object).unwrap() == bytes));
    }
    let error = store.get_cached(BUCKET, "missing").unwrap_err();
    assert!(matches!(error, Error::NoSuchKey { .. }), "{error}");
}

#[test]
fn big_object_is_read_in_megabytes_and_bypasses_the_page_cache() {
    const BYTES: usize = 8 << 20;
    let Some(bench) = Bench::new() else { return };
    let bytes = random_bytes(2, BYTES);
    put(&bench.store, "big", &bytes);
    for _ in 0..2 {
        bench.evict();
        let (found, counted) =
            bench.count(|| content(&bench.store.get(BUCKET, "big").unwrap()).unwrap());
        assert!(found == bytes);
        // The needle, the table, and the bytes in requests of the maximum length.
        assert!(counted.read_bytes >= BYTES as u64, "the second time, too: {counted:?}");
        assert!(counted.read_bytes <= BYTES as u64 + (16 << 10), "{counted:?}");
        assert!(counted.reads <= 2 + 8 * 8, "{counted:?}");
    }
}

#[test]
fn listings_and_misses_cause_no_requests() {
    let Some(bench) = Bench::new() else { return };
    for n in 0..100 {
        put(&bench.store, &format!("key {n}"), b"bytes");
    }
    bench.evict();
    let before = bench.store.stats();
    let ((), counted) = bench.count(|| {
        for n in 0..100 {
            let request =
                ListRequest { limit: 1000, delimiter: Some("/"), ..ListRequest::default() };
            assert_eq!(bench.store.list(BUCKET, &request).unwrap().entries.len(), 100);
            let missing = format!("missing {n}");
            assert!(matches!(bench.store.get(BUCKET, &missing), Err(Error::NoSuchKey { .. })));
            assert!(matches!(bench.store.head(BUCKET, &missing), Err(Error::NoSuchKey { .. })));
            assert_eq!(bench.store.stat(BUCKET, &format!("key {n}")).unwrap().bytes, 5);
            assert_eq!(bench.store.bucket(BUCKET).unwrap().objects, 100);
        }
    });
    let after = bench.store.stats();
    assert_eq!((counted.reads, counted.writes, counted.syncs), (0, 0, 0), "{counted:?}");
    assert_eq!(after.needle_reads, before.needle_reads);
}

#[test]
fn concurrent_writers_share_syncs() {
    const WRITERS: u64 = 16;
    const OBJECTS: u64 = 50;
    let Some(bench) = Bench::new() else { return };
    let before = bench.store.stats();
    let written = AtomicU64::new(0);
    let ((), counted) = bench.count(|| {
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (store, written) = (&bench.store, &written);
                scope.spawn(move || {
                    for n in 0..OBJECTS {
                        put(store, &format!("{writer}/{n}"), &random_bytes(n, 4096));
                        written.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
    });
    let after = bench.store.stats();
    let batches = after.log_batches - before.log_batches;
    assert_eq!(after.log_records - before.log_records, WRITERS * OBJECTS);
    assert_eq!(counted.syncs, batches, "one sync per batch: {counted:?}");
    assert!(batches * 2 < WRITERS * OBJECTS, "{batches} batches");
    println!("{} objects in {batches} batches: {counted:?}", WRITERS * OBJECTS);
}

#[test]
fn single_writer_pays_one_write_and_one_sync_per_object() {
    let Some(bench) = Bench::new() else { return };
    put(&bench.store, "first", b"bytes");
    let ((), counted) =
        bench.count(|| (0..32).for_each(|n| drop(put(&bench.store, &n.to_string(), b"bytes"))));
    assert_eq!(counted.syncs, 32, "{counted:?}");
    // The kernel counts the sync of the device's write cache as a write of no bytes.
    assert_eq!(counted.writes, 64, "{counted:?}");
    assert!(counted.written_bytes <= 32 * 2 * PAGE_BYTES as u64, "{counted:?}");
}

#[test]
fn objects_of_one_call_pay_one_write_and_one_sync() {
    let Some(bench) = Bench::new() else { return };
    put(&bench.store, "first", b"bytes");
    let keys: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
    let (attributes, precondition) = (&Attributes::new(), &Precondition::None);
    let object = |key| NewObject { key, bytes: b"bytes", attributes, precondition };
    let objects: Vec<_> = keys.iter().map(|key| object(key)).collect();
    for _ in 0..2 {
        let before = bench.store.stats();
        let (outcomes, counted) = bench.count(|| bench.store.put_many(BUCKET, &objects));
        assert!(outcomes.iter().all(Result::is_ok));
        let after = bench.store.stats();
        assert_eq!(after.log_records - before.log_records, 1000);
        assert_eq!((after.log_batches - before.log_batches, counted.syncs), (1, 1), "{counted:?}");
        assert_eq!(after.needle_reads, before.needle_reads, "the objects were stored recently");
        assert!(counted.written_bytes <= 1000 * 120 + 2 * PAGE_BYTES as u64, "{counted:?}");
    }
}
