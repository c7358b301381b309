//! Puts that occupy no thread: they are completed without being polled, and refused if they would
//! block.

use std::os::fd::AsFd;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use haul_disk::Op;
use haul_disk_sim::{MemoryDisk, Survival};
use haul_file_store::{
    Attributes, Error, ObjectInfo, Options, PendingPut, Precondition, Result, Store, StoredObject,
};
use haul_testing::{eventually, within_a_minute};
use parking_lot::Mutex;
use rustix::io::Errno;

use crate::crash::open_on;
use crate::{BUCKET, dump, file_names, get, new_store, put, random_bytes, try_get, try_put};

/// The name of the thread that waits for the log on behalf of all started puts.
const COMPLETING: &str = "store-complete";

/// A waker that unparks a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let (mut future, mut context) = (pin!(future), Context::from_waker(&waker));
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

pub(crate) fn try_start(store: &Store, key: &str, bytes: &[u8]) -> Result<Option<PendingPut>> {
    store.start_put(BUCKET, key, bytes, &Attributes::new(), &Precondition::None)
}

fn start(store: &Store, key: &str, bytes: &[u8]) -> PendingPut {
    try_start(store, key, bytes).unwrap().unwrap()
}

/// Stores an object with `start_put`, or with `put` if that would block.
pub(crate) fn put_either(store: &Store, key: &str, bytes: &[u8]) -> ObjectInfo {
    match try_start(store, key, bytes).unwrap() {
        Some(pending) => block_on(pending).unwrap().info,
        None => put(store, key, bytes),
    }
}

/// Creates a store in memory with one bucket.
fn memory_store() -> (MemoryDisk, Store) {
    let disk = MemoryDisk::default();
    let (store, _) = open_on(&disk);
    store.create_bucket(BUCKET).unwrap();
    (disk, store)
}

#[test]
fn resolved_put_is_visible_and_durable() {
    let (disk, store) = memory_store();
    let attributes = Attributes::from_iter([("content-type", "text/plain")]);
    for (n, length) in [0, 1, 4096, Store::START_PUT_BYTES_MAX].into_iter().enumerate() {
        let (key, bytes) = (n.to_string(), random_bytes(1, length));
        let started = store.start_put(BUCKET, &key, &bytes, &attributes, &Precondition::Absent);
        let StoredObject { info, location } = block_on(started.unwrap().unwrap()).unwrap();
        assert_eq!(store.location(BUCKET, &key), Some(location));
        assert_eq!(store.stat(BUCKET, &key).unwrap(), info);
        assert_eq!(info.etag, put(&store, "same bytes", &bytes).etag);
        assert_eq!(store.get(BUCKET, &key).unwrap().attributes, attributes);
        let lost_power = MemoryDisk::on(&disk.medium().cut(Survival::Nothing));
        assert_eq!(get(&open_on(&lost_power).0, &key), bytes);
    }
    assert_eq!(store.stats().puts, 8);
}

#[test]
fn put_returns_the_location_of_its_object() {
    let (_disk, store) = memory_store();
    let none = Attributes::new();
    for length in [0, 1, 900, 5000, 9000, 300_000] {
        let bytes = random_bytes(2, length);
        let put = || store.put_located(BUCKET, "key", &bytes, &none, &Precondition::None).unwrap();
        let (first, second) = (put(), put());
        assert_ne!(first.location, second.location, "{length}");
        assert_eq!(store.location(BUCKET, "key"), Some(second.location), "{length}");
    }
}

#[test]
fn dropped_and_unpolled_puts_are_completed_by_close() {
    within_a_minute("closing", || {
        let (disk, store) = memory_store();
        let (unpolled, ()) = disk.during_a_sync_of(
            COMPLETING,
            || {
                drop(start(&store, "dropped", b"1"));
                start(&store, "unpolled", b"2")
            },
            || {
                drop(start(&store, "dropped behind the sync", b"3"));
                assert!(matches!(try_get(&store, "dropped"), Err(Error::NoSuchKey { .. })));
            },
        );
        store.close().unwrap();
        assert_eq!(block_on(unpolled).unwrap().info.bytes, 1);
        let (store, _) = open_on(&MemoryDisk::on(&disk.medium()));
        assert_eq!(get(&store, "dropped"), b"1");
        assert_eq!(get(&store, "unpolled"), b"2");
        assert_eq!(get(&store, "dropped behind the sync"), b"3");
    });
}

#[test]
fn unpolled_puts_do_not_block_operations_that_exclude_writers() {
    within_a_minute("creating a bucket", || {
        let (disk, store) = memory_store();
        disk.block(Op::Sync);
        let mut unpolled = vec![start(&store, "first", b"bytes")];
        disk.wait_until_blocked();
        thread::scope(|scope| {
            let creating = scope.spawn(|| store.create_bucket("other"));
            eventually("a put would wait for the bucket", || {
                let started = try_start(&store, &unpolled.len().to_string(), b"bytes").unwrap();
                let is_none = started.is_none();
                unpolled.extend(started);
                is_none
            });
            assert!(!creating.is_finished());
            disk.unblock();
            creating.join().unwrap().unwrap();
        });
        // Checkpoints are frequent and wait for all writers.
        for n in 0..2000 {
            let key = format!("{n:04}");
            match try_start(&store, &key, b"bytes").unwrap() {
                Some(pending) => unpolled.push(pending),
                None => drop(put(&store, &key, b"bytes")),
            }
        }
        store.snapshot_on(Arc::new(MemoryDisk::default())).unwrap();
        store.close().unwrap();
        unpolled.into_iter().for_each(|pending| drop(block_on(pending).unwrap()));
        let (store, recovered) = open_on(&MemoryDisk::on(&disk.medium()));
        assert_eq!(recovered.damage, []);
        assert!(dump(&store)[BUCKET].len() >= 2001);
    });
}

#[test]
fn put_of_a_key_that_is_being_written_would_block() {
    let (disk, store) = memory_store();
    let (first, ()) = disk.during_a_sync_of(
        COMPLETING,
        || start(&store, "key", b"first"),
        || assert!(try_start(&store, "key", b"second").unwrap().is_none()),
    );
    block_on(first).unwrap();
    assert_eq!(get(&store, "key"), b"first");
    block_on(start(&store, "key", b"second")).unwrap();
    assert_eq!(get(&store, "key"), b"second");
}

#[test]
fn long_object_and_full_buffer_would_block() {
    let (disk, store) = memory_store();
    let longer = random_bytes(1, Store::START_PUT_BYTES_MAX + 1);
    assert!(try_start(&store, "long", &longer).unwrap().is_none());
    let longest = &longer[1..];
    disk.block(Op::Sync);
    let mut started = Vec::new();
    while let Some(pending) = try_start(&store, &started.len().to_string(), longest).unwrap() {
        started.push(pending);
    }
    disk.unblock();
    let count = started.len();
    started.into_iter().for_each(|pending| drop(block_on(pending).unwrap()));
    assert_eq!(store.stats().objects, count as u64);
    // A checkpoint may exclude writers now.
    put_either(&store, "after", longest);
}

#[test]
fn present_object_that_must_be_read_would_block() {
    let (_disk, store) = memory_store();
    put(&store, "cold", b"bytes");
    let test = || {
        let none = Attributes::new();
        store.start_put(BUCKET, "cold", b"new", &none, &Precondition::Absent)
    };
    assert!(matches!(test(), Err(Error::PreconditionFailed)), "the object was stored recently");
    let mut fillers = 0;
    eventually("a checkpoint is written", || {
        fillers += 1;
        put(&store, &fillers.to_string(), b"bytes");
        test().is_ok_and(|started| started.is_none())
    });
    put_either(&store, "cold", b"new");
    assert_eq!(get(&store, "cold"), b"new");
}

#[test]
fn refused_put_releases_its_locks() {
    let (_disk, store) = memory_store();
    put(&store, "key", b"bytes");
    let none = Attributes::new();
    for _ in 0..2 {
        let refused = store.start_put(BUCKET, "key", b"new", &none, &Precondition::Absent);
        assert!(matches!(refused, Err(Error::PreconditionFailed)));
        let refused = store.start_put("missing", "key", b"new", &none, &Precondition::None);
        assert!(matches!(refused, Err(Error::NoSuchBucket { .. })));
        let refused = store.start_put(BUCKET, "", b"new", &none, &Precondition::None);
        assert!(matches!(refused, Err(Error::InvalidKey { .. })));
    }
    store.create_bucket("other").unwrap();
    put(&store, "key", b"new");
}

#[test]
fn full_disk_would_block_and_loses_nothing() {
    let (disk, store) = memory_store();
    disk.limit(Some((20 << 20) + (100 << 10)));
    let filler = random_bytes(1, 50_000);
    let fillers = (0..).find(|n: &u64| try_put(&store, &n.to_string(), &filler).is_err()).unwrap();
    let mut started = 0;
    let bytes = random_bytes(2, Store::START_PUT_BYTES_MAX);
    let mut put_small = |n: u64| match try_start(&store, &format!("small {n}"), &bytes).unwrap() {
        Some(pending) => {
            started += 1;
            drop(block_on(pending).unwrap());
            true
        }
        None => match try_put(&store, &format!("small {n}"), &bytes) {
            Ok(_) => {
                started += 1;
                true
            }
            Err(Error::Full { .. }) => false,
            Err(other) => panic!("{other:?}"),
        },
    };
    let refused = (0..).find(|n| !put_small(*n)).unwrap();
    assert!(!put_small(refused));
    assert!(try_start(&store, "refused", &bytes).unwrap().is_none());
    assert!(!store.stats().latched);
    assert_eq!(store.stats().objects, fillers + started);
    for n in 0..fillers {
        assert!(store.delete(BUCKET, &n.to_string()).unwrap());
    }
    store.compact().unwrap();
    put_either(&store, "refused", &bytes);
}

#[test]
fn failed_sync_is_returned_by_every_pending_put() {
    let (disk, store) = memory_store();
    put(&store, "before", b"before");
    disk.fail_always(Op::Sync, Errno::IO);
    // The first sync may be that of a file of the index.
    let mut pending = Vec::new();
    for n in 0..8 {
        match try_start(&store, &n.to_string(), b"lost") {
            Ok(started) => pending.extend(started),
            Err(error) => assert!(matches!(error, Error::Log(_)), "{error:?}"),
        }
    }
    assert!(!pending.is_empty());
    for pending in pending {
        let outcome = block_on(pending);
        assert!(matches!(outcome, Err(Error::Log(_))), "{outcome:?}");
    }
    assert!(store.stats().latched);
    assert!(
        matches!(try_start(&store, "later", b"lost"), Err(Error::Log(_))),
        "the failure is final"
    );
    assert!(matches!(try_put(&store, "0", b"lost"), Err(Error::Log(_))), "the key is unlocked");
    assert_eq!(dump(&store)[BUCKET].len(), 1);
    disk.heal();
    assert!(store.close().is_err());
    let (store, _) = open_on(&MemoryDisk::on(&disk.medium()));
    assert_eq!(get(&store, "before"), b"before");
}

/// A waker that drops the store on the thread that calls it.
struct DropStore(Mutex<Option<Store>>);

impl Wake for DropStore {
    fn wake(self: Arc<Self>) {
        drop(self.0.lock().take());
    }
}

#[test]
fn waker_may_drop_the_store() {
    within_a_minute("dropping the store", || {
        let (disk, store) = memory_store();
        disk.block(Op::Sync);
        let mut pending = pin!(start(&store, "key", b"bytes"));
        disk.wait_until_blocked();
        drop(start(&store, "dropped", b"bytes"));
        let waker = Arc::new(DropStore(Mutex::new(Some(store))));
        let polled = pending.as_mut().poll(&mut Context::from_waker(&Arc::clone(&waker).into()));
        assert!(polled.is_pending());
        disk.unblock();
        eventually("the store is closed", || {
            let closed = Store::open_on(Arc::new(disk.clone()), crate::small());
            closed.is_ok_and(|(store, _)| get(&store, "dropped") == b"bytes")
        });
    });
}

#[test]
fn present_object_in_the_page_cache_does_not_block() {
    let (dir, store) = new_store();
    put(&store, "cold", b"bytes");
    let start = |precondition: &Precondition| {
        store.start_put(BUCKET, "cold", b"new one", &Attributes::new(), precondition)
    };
    let mut fillers = 0;
    eventually("the object is neither recent nor cached", || {
        fillers += 1;
        put(&store, &fillers.to_string(), b"bytes");
        for name in file_names(&dir.path().join("volumes")) {
            let file = std::fs::File::open(dir.path().join("volumes").join(name)).unwrap();
            haul_disk::evict(&file.as_fd(), 0, u64::MAX).unwrap();
        }
        start(&Precondition::Absent).is_ok_and(|started| started.is_none())
    });
    assert_eq!(store.head(BUCKET, "cold").unwrap().info.bytes, 5);
    // Reading the object fetches what the system may have evicted since.
    let start_cached = |precondition: &Precondition| {
        store.head(BUCKET, "cold").unwrap();
        start(precondition)
    };
    eventually("the precondition is tested without blocking", || {
        matches!(start_cached(&Precondition::Absent), Err(Error::PreconditionFailed))
    });
    let mut started = None;
    eventually("no checkpoint excludes writers", || {
        started = start_cached(&Precondition::None).unwrap();
        started.is_some()
    });
    block_on(started.unwrap()).unwrap();
    assert_eq!(get(&store, "cold"), b"new one");
    let stats = store.stats();
    assert_eq!((stats.objects, stats.object_bytes), (fillers + 1, 5 * fillers + 7));
}

#[test]
fn futures_that_resolve_together_are_woken_together() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let wake_all: fn(&mut dyn FnMut()) = |wake| {
        CALLS.fetch_add(1, Ordering::Relaxed);
        wake();
    };
    let disk = MemoryDisk::default();
    let options = Options { wake_all, ..crate::small() };
    let (store, _) = Store::open_on(Arc::new(disk.clone()), options).unwrap();
    store.create_bucket(BUCKET).unwrap();
    let (first, others) = disk.during_a_sync_of(
        COMPLETING,
        || start(&store, "first", b"bytes"),
        || (0..20).map(|n| start(&store, &n.to_string(), b"bytes")).collect::<Vec<_>>(),
    );
    block_on(first).unwrap();
    others.into_iter().for_each(|pending| drop(block_on(pending).unwrap()));
    store.close().unwrap();
    assert_eq!(CALLS.load(Ordering::Relaxed), 2, "21 puts in two syncs");
}
