//! Each change waits once for the copy, without a lock, and fails if the copy does not confirm it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use haul_append_log::Lsn;
use haul_disk_sim::MemoryDisk;
use haul_file_store::{
    Attributes, Error, Lifecycle, NewObject, Options, Precondition, Replication, Store,
};
use haul_testing::{PrintOnPanic, eventually, within_a_minute};
use parking_lot::Mutex;

use crate::replication::operations::{KEY, changes, is_empty, set_rules, without_change};
use crate::{BUCKET, dump, put, small};

/// A copy that records for which ends of the log the store waits.
#[derive(Debug, Default)]
struct Copy {
    store: OnceLock<Weak<Store>>,
    waits: Mutex<Vec<Lsn>>,
    /// The check to run during each wait.
    check: Mutex<Option<fn(&Store)>>,
    is_unreachable: AtomicBool,
}

impl Replication for Copy {
    fn wait(&self, end: Lsn) -> Result<(), String> {
        self.waits.lock().push(end);
        // The calls of the check wait, too.
        let check = self.check.lock().take();
        if let Some(check) = check {
            let store = self.store.get().and_then(Weak::upgrade).unwrap();
            within_a_minute("a call during the wait", move || check(&store));
        }
        match self.is_unreachable.load(Ordering::Relaxed) {
            true => Err("the copy is unreachable".to_owned()),
            false => Ok(()),
        }
    }
}

impl Copy {
    /// Opens a store that this copy follows, and creates its bucket.
    fn open(self: &Arc<Self>, disk: &MemoryDisk, options: Options) -> Arc<Store> {
        let options = Options { replication: Some(Arc::clone(self) as _), ..options };
        let store = Arc::new(Store::open_on(Arc::new(disk.clone()), options).unwrap().0);
        store.create_bucket(BUCKET).unwrap();
        self.store.set(Arc::downgrade(&store)).unwrap();
        self.waits.lock().clear();
        store
    }

    fn take_waits(&self) -> Vec<Lsn> {
        std::mem::take(&mut self.waits.lock())
    }
}

#[test]
fn each_change_waits_once_for_a_log_that_contains_it() {
    let copy = Arc::new(Copy::default());
    let store = copy.open(&MemoryDisk::default(), small());
    for operation in changes() {
        let _context = PrintOnPanic(operation.name.to_owned());
        (operation.prepare)(&store);
        copy.take_waits();
        let before = store.log().synced();
        assert!(!(operation.is_visible)(&store));
        (operation.act)(&store).unwrap();
        assert!((operation.is_visible)(&store));
        assert_eq!(copy.take_waits(), [store.log().synced()]);
        assert!(before < store.log().synced());
    }
}

#[test]
fn calls_that_change_nothing_do_not_wait() {
    let copy = Arc::new(Copy::default());
    let store = copy.open(&MemoryDisk::default(), small());
    put(&store, KEY, b"present");
    for operation in without_change() {
        let _context = PrintOnPanic(operation.name.to_owned());
        copy.take_waits();
        let before = store.log().synced();
        drop((operation.act)(&store));
        assert_eq!((copy.take_waits(), store.log().synced()), (vec![], before));
    }
}

/// The client repeats a deletion that the copy did not confirm. The object is then gone, but the
/// copy may still have it.
#[test]
fn repeated_deletion_waits_for_the_copy() {
    let copy = Arc::new(Copy::default());
    let store = copy.open(&MemoryDisk::default(), small());
    put(&store, KEY, b"present");
    copy.is_unreachable.store(true, Ordering::Relaxed);
    for _ in 0..2 {
        let refused = store.delete(BUCKET, KEY);
        assert!(matches!(refused, Err(Error::NotReplicated { .. })), "{refused:?}");
    }
    copy.is_unreachable.store(false, Ordering::Relaxed);
    copy.take_waits();
    assert!(!store.delete(BUCKET, KEY).unwrap());
    assert_eq!(copy.take_waits(), [store.log().synced()]);
}

/// Writes the keys and buckets of all operations, and makes compaction wait for all writers.
fn use_all_locks(store: &Store) {
    let attributes = Attributes::new();
    for key in [KEY, "a", "b", "copy", "upload"] {
        put(store, key, b"during the wait");
        assert!(store.delete(BUCKET, key).unwrap());
    }
    for bucket in ["new", "other"] {
        match store.create_bucket(bucket) {
            Ok(()) => store.delete_bucket(bucket).unwrap(),
            Err(_) => store.set_lifecycle(bucket, &Lifecycle::default()).unwrap(),
        }
    }
    store.set_lifecycle(BUCKET, &Lifecycle::default()).unwrap();
    let volumes = store.log().segments().last().unwrap().number;
    let (bytes, precondition) = (vec![1; 60_000], &Precondition::None);
    let filler = NewObject { key: "filler", bytes: &bytes, attributes: &attributes, precondition };
    while store.log().segments().last().unwrap().number == volumes {
        assert!(store.put_many(BUCKET, &[filler]).iter().all(Result::is_ok));
    }
    assert!(store.delete(BUCKET, "filler").unwrap());
    store.compact().unwrap();
}

#[test]
fn no_lock_is_held_during_the_wait() {
    for (number, operation) in changes().into_iter().enumerate() {
        let _context = PrintOnPanic(operation.name.to_owned());
        let copy = Arc::new(Copy::default());
        let store = copy.open(&MemoryDisk::default(), small());
        // The state that the operations before it leave.
        for before in changes().iter().take(number) {
            (before.prepare)(&store);
            (before.act)(&store).unwrap();
        }
        (operation.prepare)(&store);
        *copy.check.lock() = Some(use_all_locks);
        (operation.act)(&store).unwrap();
        assert!(copy.check.lock().is_none(), "the check did not run");
    }
}

#[test]
fn unconfirmed_change_fails_and_stays_in_effect() {
    let (copy, disk) = (Arc::new(Copy::default()), MemoryDisk::default());
    let store = copy.open(&disk, small());
    for operation in changes() {
        let _context = PrintOnPanic(operation.name.to_owned());
        copy.is_unreachable.store(false, Ordering::Relaxed);
        (operation.prepare)(&store);
        copy.is_unreachable.store(true, Ordering::Relaxed);
        let failed = (operation.act)(&store).unwrap_err();
        assert!(matches!(failed, Error::NotReplicated { .. }), "{failed:?}");
        assert!(failed.to_string().ends_with("the copy is unreachable"), "{failed}");
        assert!((operation.is_visible)(&store));
    }
    let (content, medium) = (dump(&store), disk.medium());
    let disk = Arc::new(MemoryDisk::on(&medium));
    assert!(dump(&Store::open_on(disk, small()).unwrap().0) == content);
}

#[test]
fn only_the_changes_of_a_batch_are_unconfirmed() {
    let copy = Arc::new(Copy::default());
    let store = copy.open(&MemoryDisk::default(), small());
    put(&store, KEY, b"present");
    copy.is_unreachable.store(true, Ordering::Relaxed);
    // A deletion of a missing key may repeat an unconfirmed one.
    let deleted = store.delete_many(BUCKET, &["absent", KEY]);
    let is_unconfirmed = |outcome: &_| matches!(outcome, Err(Error::NotReplicated { .. }));
    assert!(deleted.iter().all(is_unconfirmed), "{deleted:?}");
    let attributes = &Attributes::new();
    let object = |key, precondition| NewObject { key, bytes: b"x", attributes, precondition };
    let objects = [object("a", &Precondition::Present), object("b", &Precondition::None)];
    let stored = store.put_many(BUCKET, &objects);
    let expected = [Err(Error::PreconditionFailed), Err(Error::NotReplicated { what: "".into() })];
    for (outcome, expected) in stored.iter().zip(&expected) {
        let kind = |outcome: &Result<_, Error>| outcome.as_ref().err().map(std::mem::discriminant);
        assert_eq!(kind(outcome), kind(expected), "{outcome:?}");
    }
}

#[test]
fn copy_of_an_object_that_became_big_waits_once() {
    let (copy, disk) = (Arc::new(Copy::default()), MemoryDisk::default());
    let options = Options { big_object_bytes: 256 << 10, ..small() };
    let store = Store::open_on(Arc::new(disk.clone()), options.clone()).unwrap().0;
    store.create_bucket("source").unwrap();
    let none = Attributes::new();
    store.put("source", KEY, &[1; 100_000], &none, &Precondition::None).unwrap();
    store.close().unwrap();
    let store = copy.open(&disk, small());
    store.copy(("source", KEY), (BUCKET, KEY), None, &Precondition::None).unwrap();
    assert_eq!(copy.take_waits(), [store.log().synced()]);
}

#[test]
fn sweep_of_the_background_thread_waits_and_reports_the_unconfirmed_change() {
    let copy = Arc::new(Copy::default());
    let options = Options { lifecycle_check_every: Duration::from_millis(1), ..small() };
    let store = copy.open(&MemoryDisk::default(), options);
    put(&store, KEY, b"expired");
    set_rules(&store).unwrap();
    let before = store.log().synced();
    eventually("the sweep waits", || copy.waits.lock().iter().any(|end| *end > before));
    assert!(is_empty(&store));
    assert_eq!(store.last_lifecycle_error(), None);
    copy.is_unreachable.store(true, Ordering::Relaxed);
    put_unconfirmed(&store);
    // A sweep follows a change of the rules.
    assert!(matches!(set_rules(&store), Err(Error::NotReplicated { .. })));
    eventually("the sweep fails", || store.last_lifecycle_error().is_some());
    let error = store.last_lifecycle_error().unwrap();
    assert!(error.contains("the copy is unreachable"), "{error}");
}

fn put_unconfirmed(store: &Store) {
    let stored = store.put(BUCKET, KEY, b"expired", &Attributes::new(), &Precondition::None);
    assert!(matches!(stored, Err(Error::NotReplicated { .. })), "{stored:?}");
}
