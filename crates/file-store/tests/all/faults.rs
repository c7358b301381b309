//! A disk that fails at any call.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use haul_disk::{Disk, Op};
use haul_disk_sim::MemoryDisk;
use haul_file_store::{Attributes, Error, Precondition, VersionId, Versioning, WorkKind};
use haul_testing::{PrintOnPanic, Random, replay_command, seed};
use rustix::io::Errno;

use crate::contents::Contents;
use crate::crash::open_on;
use crate::script::{Act, Model};
use crate::script_inputs::Lengths;
use crate::{BIG, BUCKET, get, put, random_bytes, try_put};

/// Runs a workload in which the `n`-th call of a kind fails. Returns `true` if the call occurred.
fn fail_nth(seed: u64, op: Op, n: u64) -> bool {
    let _context = PrintOnPanic(format!("{op:?} number {n} fails\n{}", replay_command(seed)));
    let disk = MemoryDisk::default();
    let (store, _) = open_on(&disk);
    let before = disk.calls(op);
    let (mut random, mut model) = (Random(seed), Model::default());
    let mut failed = None;
    disk.fail(op, n, 1, Errno::IO);
    for _ in 0..60 {
        let act = model.plan(&mut random, Lengths::Long);
        match model.execute(&act, &store) {
            Ok(started) => model.apply(&act, started),
            Err(_) => {
                failed = Some(act);
                break;
            }
        }
    }
    let occurred = disk.calls(op) >= before + n;
    assert!(occurred || failed.is_none(), "an error without an injected fault");
    let seen = Contents::of(&store);
    let is_part = failed.as_ref().filter(|act| act.is_divisible());
    let after = model.after(is_part, &seen);
    let mut model = after.expect("a failed act is not visible, except of several objects");
    disk.heal();
    if !store.stats().latched {
        // The act was refused and the store continues, unless a background thread latches it now.
        failed = None;
        for _ in 0..10 {
            let act = model.plan(&mut random, Lengths::Short);
            match model.execute(&act, &store) {
                Ok(started) => model.apply(&act, started),
                // A volume that could not be removed stops compaction, and nothing else.
                Err(Error::Stopped { .. }) if matches!(act, Act::Compact) => {}
                Err(error) => {
                    assert!(store.stats().latched, "{act:?}: {error:?}");
                    failed = Some(act);
                    break;
                }
            }
        }
    }
    let is_latched = store.stats().latched;
    assert_eq!(store.close().is_err(), is_latched);
    // The kernel may have dropped unsynced bytes: the store must open with the rest.
    let disk = MemoryDisk::on(&disk.medium());
    let (store, recovered) = open_on(&disk);
    assert_eq!(recovered.damage, []);
    assert!(model.after(failed.as_ref(), &Contents::of(&store)).is_some());
    assert_eq!(disk.list("objects").unwrap().len() as u64, store.stats().big_files);
    occurred
}

#[test]
fn failed_call_returns_an_error_and_loses_no_data() {
    let seed = seed();
    for op in [Op::Sync, Op::SyncDir, Op::Write, Op::Create, Op::Rename, Op::Allocate, Op::Remove] {
        let (mut n, mut occurred) = (1, 0);
        while fail_nth(seed, op, n) {
            occurred += 1;
            // Each of the first calls, then a decreasing share.
            n += 1 + n / 6;
        }
        println!("SEED={seed}: {occurred} of {n} calls to {op:?} failed");
        assert!(occurred >= 1 || op == Op::Remove);
    }
}

#[test]
fn failed_sync_of_the_log_reaches_all_writers_and_is_final() {
    let disk = MemoryDisk::default();
    let (store, _) = open_on(&disk);
    store.create_bucket(BUCKET).unwrap();
    put(&store, "before", b"before");
    disk.fail(Op::Sync, 1, u64::MAX, Errno::IO);
    thread::scope(|scope| {
        for thread in 0..8 {
            let store = &store;
            scope.spawn(move || {
                let outcome = try_put(store, &thread.to_string(), b"lost");
                assert!(matches!(outcome, Err(Error::Log(_))), "{outcome:?}");
            });
        }
    });
    disk.heal();
    assert!(store.stats().latched);
    assert!(
        matches!(try_put(&store, "later", b"lost"), Err(Error::Log(_))),
        "the failure is final"
    );
    assert!(matches!(store.delete(BUCKET, "before"), Err(Error::Log(_))));
    assert_eq!(get(&store, "before"), b"before");
    assert!(store.close().is_err());
    let (store, _) = open_on(&MemoryDisk::on(&disk.medium()));
    assert_eq!(get(&store, "before"), b"before");
}

#[test]
fn refused_files_of_big_objects_are_a_trouble_of_their_own() {
    let disk = MemoryDisk::default();
    let (store, _) = open_on(&disk);
    store.create_bucket(BUCKET).unwrap();
    let big = random_bytes(1, BIG);
    for errno in [Errno::ACCESS, Errno::MFILE, Errno::ROFS, Errno::NOENT] {
        disk.fail_always(Op::Create, errno);
        let refused = try_put(&store, "big", &big);
        assert!(matches!(refused, Err(Error::Refused { .. })), "{refused:?}");
        let reason = std::io::Error::from(errno).to_string();
        let failures = store.ongoing_failures();
        assert!(
            failures.iter().any(|it| it.work == WorkKind::BigObjects && it.reason == reason),
            "{failures:?}"
        );
        assert!(failures.iter().all(|it| it.work != WorkKind::Changes), "{failures:?}");
        put(&store, "small", b"small");
        disk.heal();
        put(&store, "big", &big);
        assert!(
            store.ongoing_failures().iter().all(|failure| failure.work != WorkKind::BigObjects)
        );
    }
    assert!(!store.stats().latched);
    store.close().unwrap();
}

/// A sync that fails for compaction either can be repeated, or is final and told.
#[test]
fn compaction_succeeds_after_a_failed_sync_or_the_store_is_latched() {
    // Threads that fill files sync, too, so that the log's sync has another number each time.
    let latched = (0..20).any(|_| compaction_with_each_sync_failing() > 0);
    assert!(latched, "no failed sync was that of the log");
}

/// Compacts with the first sync failing, with the second, and so on. Returns how many were final.
fn compaction_with_each_sync_failing() -> u64 {
    let mut latched = 0;
    for n in 1.. {
        let disk = MemoryDisk::default();
        let (store, _) = open_on(&disk);
        store.create_bucket(BUCKET).unwrap();
        for key in 0..30 {
            put(&store, &key.to_string(), &random_bytes(key, BIG - 1));
        }
        for key in 0..30 {
            assert!(store.delete(BUCKET, &key.to_string()).unwrap());
        }
        let before = disk.calls(Op::Sync);
        disk.fail(Op::Sync, n, 1, Errno::IO);
        let first = store.compact();
        disk.heal();
        if disk.calls(Op::Sync) < before + n {
            assert!(n > 3, "{n} syncs");
            break;
        }
        let again = store.compact();
        let is_latched = store.stats().latched;
        latched += u64::from(is_latched);
        assert!(again.is_ok() || is_latched, "sync {n}: {first:?}, then {again:?}");
        assert_eq!(store.close().is_err(), is_latched, "sync {n}: {first:?}, then {again:?}");
    }
    latched
}

/// A server reports the state of its disk while the disk does not respond.
#[test]
fn statistics_do_not_wait_for_the_disk() {
    for op in [Op::Sync, Op::Write, Op::Create, Op::Rename, Op::Remove] {
        let disk = MemoryDisk::default();
        let (store, _) = open_on(&disk);
        store.create_bucket(BUCKET).unwrap();
        for key in 0..60 {
            put(&store, &key.to_string(), &random_bytes(key, BIG - 1));
        }
        for key in 0..40 {
            assert!(store.delete(BUCKET, &key.to_string()).unwrap());
        }
        disk.block(op);
        thread::scope(|scope| {
            let store = &store;
            scope.spawn(|| drop(store.compact()));
            scope.spawn(|| drop(store.create_bucket("another")));
            scope.spawn(|| drop(store.delete(BUCKET, "50")));
            scope.spawn(|| drop(try_put(store, "big", &random_bytes(1, 4 * BIG))));
            scope.spawn(|| {
                // Enough for several volumes.
                for key in 0..60 {
                    drop(try_put(store, &key.to_string(), &[7; BIG - 1]));
                }
            });
            let (sender, done) = mpsc::channel();
            scope.spawn(move || {
                for _ in 0..50 {
                    assert!(!store.stats().latched);
                    assert!(store.ongoing_failures().is_empty());
                    assert!(store.buckets().unwrap().iter().any(|bucket| bucket.name == BUCKET));
                    thread::sleep(Duration::from_millis(5));
                }
                sender.send(()).unwrap();
            });
            let answered = done.recv_timeout(Duration::from_secs(60));
            disk.unblock();
            answered.unwrap_or_else(|_| panic!("the statistics wait for {op:?}"));
        });
        store.close().unwrap();
    }
}

/// After a failed sync, the log may have what memory does not know: a key whose put failed may
/// exist when the store is opened again, so that its deletion must not be acknowledged.
#[test]
fn nothing_is_acknowledged_after_a_failed_sync() {
    let disk = MemoryDisk::default();
    let (store, _) = open_on(&disk);
    for bucket in [BUCKET, "versioned"] {
        store.create_bucket(bucket).unwrap();
    }
    store.set_versioning("versioned", Versioning::Enabled).unwrap();
    store.set_bucket_setting(BUCKET, "name", Some("value")).unwrap();
    put(&store, "existing", b"existing");
    disk.fail(Op::Sync, 1, u64::MAX, Errno::IO);
    try_put(&store, "lost", b"lost").unwrap_err();
    disk.heal();
    let version = Some(VersionId::Id(1));
    let none = Attributes::new();
    let mut outcomes = vec![
        ("deletion of a key", store.delete(BUCKET, "lost").map(drop)),
        ("deletion of a version", store.delete_object("versioned", "lost", version).map(drop)),
        ("deletion of the null version", store.delete_object(BUCKET, "lost", version).map(drop)),
        ("abortion of an upload", store.abort_upload(BUCKET, "lost", "0123")),
        ("creation of a bucket", store.create_bucket(BUCKET)),
        ("deletion of a bucket", store.delete_bucket("missing")),
        ("the same setting", store.set_bucket_setting(BUCKET, "name", Some("value"))),
        ("the same versioning", store.set_versioning("versioned", Versioning::Enabled)),
        ("object lock", store.enable_object_lock("missing")),
        ("an upload", store.start_upload(BUCKET, "lost", &none).map(drop)),
        ("a repeated request", store.confirm()),
    ];
    for keys in [&["lost", "lost"][..], &["existing", "existing", "lost"]] {
        for outcome in store.delete_many(BUCKET, keys) {
            outcomes.push(("deletion of many keys", outcome.map(drop)));
        }
    }
    for (what, outcome) in outcomes {
        assert!(
            matches!(outcome, Err(Error::Log(_) | Error::Stopped { .. })),
            "{what}: {outcome:?}"
        );
    }
}

/// What the disk refuses for another reason than space is told, and over when it accepts files.
#[test]
fn refused_files_are_a_trouble_until_they_are_accepted() {
    let disk = MemoryDisk::default();
    let (store, _) = open_on(&disk);
    store.create_bucket(BUCKET).unwrap();
    disk.fail_always(Op::Create, Errno::PERM);
    let mut n = 0;
    let refused = loop {
        n += 1;
        match try_put(&store, &n.to_string(), &random_bytes(n, BIG / 2)) {
            Ok(_) => assert!(n < 1000, "the disk refuses no file"),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, Error::Refused { .. }), "{refused:?}");
    let none = Attributes::new();
    // Each call for which no thread waits is refused, too, and not tried on another thread.
    let started = store.start_put(BUCKET, "key", b"", &none, &Precondition::None).map(drop);
    let in_time = store.put(BUCKET, "key", &random_bytes(1, BIG / 2), &none, &Precondition::None);
    assert!(in_time.is_err(), "{in_time:?}");
    drop(started);
    let failures = store.ongoing_failures();
    let changes = failures.iter().find(|failure| failure.work == WorkKind::Changes).unwrap();
    assert_eq!(changes.reason, "Operation not permitted (os error 1)");
    assert!(!store.stats().latched);
    disk.heal();
    thread::sleep(Duration::from_secs(1));
    put(&store, "accepted", &random_bytes(2, BIG / 2));
    assert!(store.ongoing_failures().iter().all(|failure| failure.work != WorkKind::Changes));
    store.close().unwrap();
}

#[test]
fn failed_sync_of_the_big_objects_directory_is_final() {
    let disk = MemoryDisk::default();
    let (store, _) = open_on(&disk);
    store.create_bucket(BUCKET).unwrap();
    disk.fail(Op::SyncDir, 1, 1, Errno::IO);
    assert!(try_put(&store, "key", &random_bytes(1, BIG)).is_err());
    assert!(store.stats().latched);
    assert!(try_put(&store, "key", &random_bytes(1, BIG)).is_err(), "the sync is not repeated");
    assert!(disk.list("objects").unwrap().is_empty());
    assert!(store.stat(BUCKET, "key").is_err());
}

#[test]
fn failed_writer_fails_until_it_is_dropped() {
    let disk = MemoryDisk::default();
    let (store, _) = open_on(&disk);
    disk.fail(Op::Write, 1, 1, Errno::IO);
    let mut writer = store.object_writer(BUCKET, Some(9 << 20)).unwrap();
    let outcomes: Vec<bool> =
        (0..9).map(|n| writer.write(&random_bytes(n, 1 << 20)).is_ok()).collect();
    assert!(!outcomes[8] && outcomes.is_sorted_by(|a, b| a >= b), "{outcomes:?}");
    assert!(writer.finish().is_err());
    assert!(disk.list("objects").unwrap().is_empty());

    disk.fail(Op::Write, 1, 1, Errno::IO);
    let mut writer = store.object_writer(BUCKET, Some(1 << 20)).unwrap();
    writer.write(&random_bytes(1, 1 << 20)).unwrap();
    assert!(writer.finish().is_err(), "at the latest when the writer is finished");
    assert!(disk.list("objects").unwrap().is_empty());
}

#[test]
fn unreadable_sector_is_an_error_for_get_and_damage_for_verify() {
    let disk = MemoryDisk::default();
    let (store, _) = open_on(&disk);
    store.create_bucket(BUCKET).unwrap();
    put(&store, "small", b"bytes");
    let got = with_failed_reads(&disk, 1, || store.get(BUCKET, "small").map(drop));
    assert!(matches!(got, Err(Error::Disk(_))));
    let verify = || store.verify(&mut |_, _| {}).unwrap();
    // The volume is read first, by one or several reads, then the object in it.
    let is_reported = (2..6).any(|reads| {
        let verified = with_failed_reads(&disk, reads, verify);
        assert_eq!(verified.objects, 1);
        verified.damage.iter().any(|damage| damage.key.as_deref() == Some("small"))
    });
    assert!(is_reported);
    assert_eq!(with_failed_reads(&disk, 1, verify).damage.len(), 1, "in the volume alone");
    assert!(verify().damage.is_empty());
}

/// Makes the next reads fail, as many as `count`, and returns the result of `call`. Calls it again
/// if a background thread of the store made the last of these reads.
fn with_failed_reads<T>(disk: &MemoryDisk, count: u64, call: impl Fn() -> T) -> T {
    for _ in 0..100 {
        disk.fail(Op::Read, 1, count, Errno::IO);
        let result = call();
        if disk.faulted_thread().as_deref() == thread::current().name() {
            return result;
        }
    }
    panic!("the call has made no read that failed");
}

#[test]
fn short_transfers_and_interrupted_calls_are_continued() {
    let disk = MemoryDisk::default();
    disk.transfer_at_most(4096);
    let (mut random, mut model) = (Random(1), Model::default());
    let (store, _) = open_on(&disk);
    for n in 0..100 {
        let op = if n % 2 == 0 { Op::Write } else { Op::Read };
        disk.fail_once(op, 1 + n % 5, Errno::INTR);
        let act = model.plan(&mut random, Lengths::Short);
        let started = model.execute(&act, &store).unwrap();
        model.apply(&act, started);
    }
    assert!(disk.faulted_thread().is_some());
    assert!(Contents::of(&store) == model.seen());
    store.close().unwrap();
    assert!(Contents::of(&open_on(&disk).0) == model.seen());
}

#[test]
fn interrupted_sync_is_final() {
    let disk = MemoryDisk::default();
    let (store, _) = open_on(&disk);
    store.create_bucket(BUCKET).unwrap();
    // A background thread may first sync an index or a spare volume, and receive the fault.
    let is_refused = (0..20).any(|_| {
        disk.fail_once(Op::Sync, 1, Errno::INTR);
        matches!(try_put(&store, "key", b"lost"), Err(Error::Log(_)))
    });
    assert!(is_refused && store.stats().latched);
}

#[test]
fn rotten_bit_anywhere_in_an_object_is_detected_by_reading_it() {
    let disk = MemoryDisk::default();
    let (store, _) = open_on(&disk);
    store.create_bucket(BUCKET).unwrap();
    let written_end = || {
        let mut medium = disk.medium();
        let file = medium.file(VOLUME_1);
        // The last page is a copy of the header.
        file[..file.len() - 4096].iter().rposition(|byte| *byte != 0).unwrap() + 1
    };
    let begins = written_end();
    put(&store, "key", &random_bytes(1, 500));
    let ends = written_end();
    let mut found = 0;
    for at in begins as u64..ends as u64 {
        let bit = (at % 8) as u8;
        disk.rot(VOLUME_1, at, bit);
        match store.get(BUCKET, "key").and_then(|object| crate::content(&object)) {
            Err(Error::Damaged { .. }) => found += 1,
            // Bytes between two records belong to no object.
            other => assert!(other.is_ok_and(|bytes| bytes == random_bytes(1, 500)), "at {at}"),
        }
        disk.rot(VOLUME_1, at, bit);
    }
    assert!(found > 500, "{found} of {}", ends - begins);
    assert_eq!(get(&store, "key"), random_bytes(1, 500));
}

const VOLUME_1: &str = "volumes/0000000001.segment";
