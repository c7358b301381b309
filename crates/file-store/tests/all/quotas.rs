//! Quotas: every write that adds something is rejected at the quota, exactly, also when many threads
//! write and after a kill.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use haul_file_store::{
    Attributes, Error, ListVersionsRequest, NewObject, OWNER_SETTING, ObjectWriter, Options,
    Precondition, Quota, QuotaExceeded, Result, Store, Usage, VersionId, VersionListEntry,
    Versioning,
};
use haul_testing::{Random, child_test};

use crate::{
    BIG, BUCKET, big_files, new_store, put, put_part, random_bytes, reopen, small, try_put,
};

const DIR: &str = "FILE_STORE_QUOTA_DIR";

/// The writing threads.
const WRITERS: u64 = 16;

/// The longest object of a writing thread.
const LENGTH_MAX: u64 = 20_000;

/// The quota of the writing threads.
const LIMIT: u64 = 1_000_000;

fn bytes(limit: u64) -> Quota {
    Quota { bytes: Some(limit), objects: None }
}

fn objects(limit: u64) -> Quota {
    Quota { bytes: None, objects: Some(limit) }
}

fn used(store: &Store) -> Usage {
    store.quota(BUCKET).unwrap().usage
}

fn is_exceeded<T>(outcome: &Result<T>) -> bool {
    matches!(outcome, Err(Error::QuotaExceeded(QuotaExceeded::Bucket { .. })))
}

/// Executes each kind of write of an object or a part of `length` bytes to the bucket; the source of
/// copies is in the bucket `source`. Returns the names of those that were not rejected.
fn accepted(store: &Store, length: usize) -> Vec<&'static str> {
    let (none, always) = (&Attributes::new(), &Precondition::None);
    let content = random_bytes(7, length);
    let upload = store.start_upload(BUCKET, "upload", none).unwrap();
    let written = |declared: Option<u64>, is_part: bool| {
        let open: fn(&Store, &str, Option<u64>) -> Result<ObjectWriter> =
            if is_part { Store::part_writer } else { Store::object_writer };
        let mut writer = open(store, BUCKET, declared)?;
        writer.write(&content)?;
        writer.finish()
    };
    let declared = Some(length as u64);
    let stored = |is_declared: bool| {
        let written = written(declared.filter(|_| is_declared), false)?;
        store.put_written(BUCKET, "written", written, none, always).map(drop)
    };
    let part = |is_declared: bool| {
        let written = written(declared.filter(|_| is_declared), true)?;
        store.put_part(BUCKET, "upload", &upload, 1, written, none).map(drop)
    };
    let many = || {
        let object =
            NewObject { key: "many", bytes: &content, attributes: none, precondition: always };
        store.put_many(BUCKET, &[object]).pop().unwrap().map(drop)
    };
    let copy = |from: &str| store.copy(("source", from), (BUCKET, "copy"), None, always).map(drop);
    let started = || match store.start_put(BUCKET, "started", &content, none, always)? {
        Some(pending) => pollster(pending).map(drop),
        None => Err(Error::Stopped { what: "it was not started" }),
    };
    let name = if length < BIG { "small" } else { "big" };
    let mut outcomes = vec![
        ("put", try_put(store, "put", &content).map(drop)),
        ("put_many", many()),
        ("copy", copy(name)),
        ("written, declared", stored(true)),
        ("written, undeclared", stored(false)),
        ("part, declared", part(true)),
        ("part, undeclared", part(false)),
    ];
    if length <= Store::START_PUT_BYTES_MAX {
        outcomes.push(("start_put", started()));
    }
    store.abort_upload(BUCKET, "upload", &upload).unwrap();
    let is_accepted = |outcome: &Result<()>| match outcome {
        Ok(()) => true,
        rejected => {
            assert!(is_exceeded(rejected), "{rejected:?}");
            false
        }
    };
    outcomes.iter().filter(|(_, outcome)| is_accepted(outcome)).map(|(name, _)| *name).collect()
}

/// Waits for a started put.
fn pollster<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    loop {
        if let std::task::Poll::Ready(outcome) = future.as_mut().poll(&mut context) {
            return outcome;
        }
        thread::yield_now();
    }
}

#[test]
fn each_write_is_rejected_at_the_quota_and_accepted_below_it() {
    for length in [5000, BIG + 1000] {
        let (dir, store) = new_store();
        store.create_bucket("source").unwrap();
        let none = Attributes::new();
        for (key, length) in [("small", 5000), ("big", BIG + 1000)] {
            let content = random_bytes(7, length);
            store.put("source", key, &content, &none, &Precondition::None).unwrap();
        }
        put(&store, "first", &[7; 1000]);
        let files = big_files(dir.path());
        store.set_quota(BUCKET, bytes(1000 + length as u64 - 1)).unwrap();
        assert_eq!(accepted(&store, length), [""; 0], "{length} bytes");
        assert_eq!(used(&store), Usage { bytes: 1000, objects: 1 });
        assert_eq!(big_files(dir.path()), files, "a rejected write leaves no file");
        let refused = store.stats().quota_refusals;
        assert_eq!(refused, if length < BIG { 8 } else { 7 });
        let fits = store.check_quota(BUCKET, Usage { bytes: length as u64 - 1, objects: 1 });
        assert!(fits.is_ok());
        store.set_quota(BUCKET, bytes(1000 + 9 * length as u64)).unwrap();
        assert_eq!(accepted(&store, length).len() as u64, refused);
        assert_eq!(store.stats().quota_refusals, refused);
        store.close().unwrap();
    }
}

#[test]
fn number_of_objects_is_limited_also_for_a_completion() {
    let (_dir, store) = new_store();
    let none = Attributes::new();
    store.set_quota(BUCKET, objects(2)).unwrap();
    let upload = store.start_upload(BUCKET, "key", &none).unwrap();
    let part = put_part(&store, "key", &upload, 1, &[7; 100]);
    put(&store, "first", b"");
    put(&store, "second", b"");
    let complete =
        || store.complete_upload(BUCKET, "key", &upload, &[part], &none, &Precondition::None);
    assert!(is_exceeded(&complete()) && is_exceeded(&try_put(&store, "third", b"")));
    // A new object counts before the one that it replaces is gone.
    assert!(is_exceeded(&try_put(&store, "first", b"")));
    put_part(&store, "key", &upload, 2, &[7; 100]);
    store.delete(BUCKET, "first").unwrap();
    complete().unwrap();
    assert_eq!(used(&store), Usage { bytes: 100, objects: 2 });
}

#[test]
fn completion_adds_no_bytes_and_abortion_returns_them() {
    let (_dir, store) = new_store();
    let none = Attributes::new();
    let upload = store.start_upload(BUCKET, "key", &none).unwrap();
    store.set_quota(BUCKET, bytes(1000)).unwrap();
    let first = put_part(&store, "key", &upload, 1, &[1; 600]);
    put_part(&store, "key", &upload, 2, &[2; 400]);
    assert_eq!(used(&store), Usage { bytes: 1000, objects: 0 });
    assert!(is_exceeded(&try_put(&store, "other", b"1")));
    store.complete_upload(BUCKET, "key", &upload, &[first], &none, &Precondition::None).unwrap();
    assert_eq!(used(&store), Usage { bytes: 600, objects: 1 });
    let upload = store.start_upload(BUCKET, "aborted", &none).unwrap();
    put_part(&store, "aborted", &upload, 1, &[1; 400]);
    // A part that replaces one counts beside it.
    assert!(is_exceeded(&store.part_writer(BUCKET, Some(1))));
    store.abort_upload(BUCKET, "aborted", &upload).unwrap();
    assert_eq!(used(&store), Usage { bytes: 600, objects: 1 });
    put(&store, "other", &[0; 400]);
}

#[test]
fn versions_and_delete_markers_count_and_deletions_are_never_rejected() {
    let (dir, store) = new_store();
    store.set_versioning(BUCKET, Versioning::Enabled).unwrap();
    put(&store, "key", &[1; 300]);
    put(&store, "key", &[2; 300]);
    store.set_quota(BUCKET, Quota { bytes: Some(1000), objects: Some(3) }).unwrap();
    put(&store, "key", &[3; 300]);
    assert_eq!(used(&store), Usage { bytes: 900, objects: 3 });
    let marker = store.delete_object(BUCKET, "key", None).unwrap();
    assert!(marker.is_delete_marker);
    assert_eq!(used(&store), Usage { bytes: 900, objects: 4 });
    assert!(is_exceeded(&try_put(&store, "key", b"")));
    let (quota, usage) = (store.quota(BUCKET).unwrap().quota, used(&store));
    store.close().unwrap();
    let (store, _) = reopen(dir.path());
    assert_eq!((store.quota(BUCKET).unwrap().quota, used(&store)), (quota, usage));
    store.delete_object(BUCKET, "key", marker.version_id).unwrap();
    assert_eq!(used(&store), Usage { bytes: 900, objects: 3 });
    let tags = |attributes: &mut Attributes| {
        attributes.set("tag", "new");
        Ok(())
    };
    store.update_attributes(BUCKET, "key", None, &tags).unwrap();
    assert_eq!(used(&store), Usage { bytes: 900, objects: 3 });
}

#[test]
fn quota_is_durable_and_ends_with_its_bucket() {
    let (dir, store) = new_store();
    store.set_quota(BUCKET, objects(0)).unwrap();
    store.set_quota(BUCKET, objects(7)).unwrap();
    assert!(matches!(store.set_quota("absent", objects(1)), Err(Error::NoSuchBucket { .. })));
    assert_eq!(store.stats().buckets, 1);
    store.close().unwrap();
    // Without the index, opening the store reads the needles in the volumes.
    std::fs::remove_dir_all(dir.path().join("index")).unwrap();
    let (store, _) = reopen(dir.path());
    assert_eq!(store.quotas().iter().map(|found| found.quota).collect::<Vec<_>>(), [objects(7)]);
    store.delete_bucket(BUCKET).unwrap();
    store.create_bucket(BUCKET).unwrap();
    assert_eq!((store.quota(BUCKET).unwrap().quota, store.quotas()), (Quota::default(), vec![]));
    store.set_quota(BUCKET, objects(1)).unwrap();
    store.set_quota(BUCKET, Quota::default()).unwrap();
    store.close().unwrap();
    let (store, _) = reopen(dir.path());
    assert_eq!(store.quotas(), []);
}

#[test]
fn import_ignores_quotas_and_they_hold_afterwards() {
    let (dir, store) = new_store();
    store.set_quota(BUCKET, bytes(10)).unwrap();
    store.close().unwrap();
    let import = Options { enforces_quotas: false, ..small() };
    let (store, _) = Store::open(dir.path(), import).unwrap();
    put(&store, "imported", &[7; 100]);
    store.close().unwrap();
    let (store, _) = reopen(dir.path());
    assert!(is_exceeded(&try_put(&store, "key", b"1")));
    put(&store, "empty", b"");
}

#[test]
fn owners_are_limited_in_buckets_of_before_and_after() {
    let (dir, store) = new_store();
    let owned = Attributes::from_iter([(OWNER_SETTING, "ann")]);
    store.create_bucket_with("before", &owned.clone().into()).unwrap();
    store.close().unwrap();
    let (store, _) = reopen(dir.path());
    let quotas = BTreeMap::from([("ann".to_owned(), bytes(1000))]);
    store.set_owner_quotas(&quotas).unwrap();
    store.create_bucket_with("after", &owned.into()).unwrap();
    let put = |bucket: &str, length: usize| {
        let none = Attributes::new();
        store.put(bucket, "key", &random_bytes(1, length), &none, &Precondition::None).map(drop)
    };
    put("before", 600).unwrap();
    let refused = put("after", 401).unwrap_err();
    assert!(matches!(refused, Error::QuotaExceeded(QuotaExceeded::Owner { .. })), "{refused}");
    put("after", 400).unwrap();
    put(BUCKET, 5000).unwrap();
    let state = store.owner_quotas().pop().unwrap();
    assert_eq!((&*state.name, state.usage), ("ann", Usage { bytes: 1000, objects: 2 }));
    store.set_bucket_setting("after", OWNER_SETTING, Some("ben")).unwrap();
    put("before", 400).unwrap();
    store.set_owner_quotas(&BTreeMap::new()).unwrap();
    put("before", 5000).unwrap();
}

/// Returns the ID of a key's oldest version.
fn oldest(store: &Store, key: &str) -> Option<VersionId> {
    let request =
        ListVersionsRequest { prefix: key, limit: 1000, ..ListVersionsRequest::default() };
    let page = store.list_versions(BUCKET, &request).unwrap();
    match page.entries.into_iter().next_back()? {
        VersionListEntry::Version(version) => Some(version.info.version_id),
        VersionListEntry::Prefix(prefix) => panic!("{prefix}"),
    }
}

/// Writes objects and versions of random lengths until one is rejected, deletes one of its own, and
/// goes on, for `rounds` writes.
fn write_until_full(store: &Store, writer: u64, rounds: u64) {
    let mut random = Random(writer + 1);
    for _ in 0..rounds {
        let key = format!("{writer}/{}", random.below(5));
        let length = usize::try_from(1 + random.below(LENGTH_MAX)).unwrap();
        match try_put(store, &key, &random.bytes(length)) {
            Ok(_) => println!("ack ."),
            Err(Error::QuotaExceeded(_)) => {
                if let Some(version) = oldest(store, &key) {
                    store.delete_object(BUCKET, &key, Some(version)).unwrap();
                }
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn concurrent_writers_of_versions_fill_a_quota_and_never_exceed_it() {
    let (_dir, store) = new_store();
    store.set_versioning(BUCKET, Versioning::Enabled).unwrap();
    store.set_quota(BUCKET, bytes(LIMIT)).unwrap();
    let is_over = AtomicBool::new(false);
    let most = thread::scope(|scope| {
        let (store, is_over) = (&store, &is_over);
        let watching = scope.spawn(move || {
            let mut most = 0;
            while !is_over.load(Ordering::Relaxed) {
                most = most.max(used(store).bytes);
            }
            most
        });
        let writers =
            (0..WRITERS).map(|writer| scope.spawn(move || write_until_full(store, writer, 40)));
        let writers: Vec<_> = writers.collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
        watching.join().unwrap()
    });
    assert!(most <= LIMIT, "{most}");
    assert!(most > LIMIT - LENGTH_MAX, "{most}");
    assert!(store.stats().quota_refusals > 0);
    store.close().unwrap();
}

#[test]
fn killed_writers() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let (store, _) = reopen(Path::new(&dir));
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let store = &store;
            scope.spawn(move || write_until_full(store, writer, u64::MAX));
        }
    });
}

#[test]
fn quota_holds_after_a_kill_of_concurrent_writers() {
    let (dir, store) = new_store();
    store.set_versioning(BUCKET, Versioning::Enabled).unwrap();
    store.set_quota(BUCKET, bytes(LIMIT)).unwrap();
    store.close().unwrap();
    for round in 0..5 {
        let mut child = child_test("quotas::killed_writers").env(DIR, dir.path()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let acknowledged = lines.map(|line| line.unwrap()).filter(|line| line.ends_with("ack ."));
        assert_eq!(acknowledged.take(200).count(), 200);
        child.kill().unwrap();
        child.wait().unwrap();
        let (store, _) = reopen(dir.path());
        assert_eq!(store.quota(BUCKET).unwrap().quota, bytes(LIMIT));
        // Each writer may have stored the copy of the version that it was about to replace.
        let used = used(&store).bytes;
        assert!(used <= LIMIT + WRITERS * LENGTH_MAX, "round {round}: {used}");
        store.close().unwrap();
    }
}
