//! Disks that die, are full, or lose the files of the pool.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use haul_disk::{Disk, Op};
use haul_disk_sim::{FaultyDisk, MemoryDisk};
use haul_file_store::{
    Attributes, Error, NewObject, ObjectInfo, OngoingFailure, Options, Precondition,
};
use haul_store_pool::{OpenWith, Pool, Waiting};
use haul_testing::eventually;
use rustix::io::Errno;

use crate::{BUCKET, check, content, fill, get, key, listed, put, small, wait_for_moves};

/// Three disks with a pool and 60 objects.
fn disks() -> [MemoryDisk; 3] {
    let disks = [(); 3].map(|()| MemoryDisk::default());
    let pool = open(&disks);
    pool.create_bucket(BUCKET).unwrap();
    fill(&pool, 0..60);
    pool.close().unwrap();
    disks
}

fn open(disks: &[MemoryDisk]) -> Pool {
    open_with(disks, &small())
}

fn open_with(disks: &[MemoryDisk], options: &Options) -> Pool {
    let disks: Vec<Arc<dyn Disk>> = disks.iter().map(|disk| Arc::new(disk.clone()) as _).collect();
    Pool::open_on(&disks, &OpenWith::default(), options).unwrap().0
}

/// Opens the pool of [`disks`] with faults in the second one. Returns the numbers of its objects, and
/// those of the others.
fn open_faulty(disks: &[MemoryDisk; 3]) -> (Pool, FaultyDisk, Vec<u64>, Vec<u64>) {
    let faulty = FaultyDisk::new(Arc::new(disks[1].clone()));
    let all: [Arc<dyn Disk>; 3] =
        [Arc::new(disks[0].clone()), Arc::new(faulty.clone()), Arc::new(disks[2].clone())];
    let pool = Pool::open_on(&all, &OpenWith::default(), &small()).unwrap().0;
    let is_on_it =
        |number: &u64| pool.members()[1].store().unwrap().stat(BUCKET, &key(*number)).is_ok();
    let (on_it, others): (Vec<u64>, Vec<u64>) = (0..60).partition(is_on_it);
    assert!(on_it.len() > 5 && others.len() > 20);
    (pool, faulty, on_it, others)
}

fn try_put(pool: &Pool, number: u64) -> haul_file_store::Result<ObjectInfo> {
    let (content, none) = (content(number), Attributes::new());
    pool.put(BUCKET, &key(number), &content, &none, &Precondition::None)
}

#[test]
fn disk_that_dies_fails_its_own_keys_only() {
    let disks = disks();
    let (pool, dying, gone, kept) = open_faulty(&disks);
    dying.fail_always(Op::Read, Errno::IO);
    for number in &kept {
        assert_eq!(get(&pool, &key(*number)).unwrap(), content(*number));
    }
    for number in &gone {
        match get(&pool, &key(*number)) {
            // It is in memory.
            Ok(bytes) => assert_eq!(bytes, content(*number)),
            Err(error) => assert!(!matches!(error, Error::NoSuchKey { .. }), "{error}"),
        }
    }
    dying.fail_always(Op::Sync, Errno::IO);
    for number in &gone {
        try_put(&pool, *number).unwrap_err();
    }
    for number in kept {
        try_put(&pool, number).unwrap();
    }
    assert!(pool.members()[1].store().unwrap().stats().latched);
    assert!(!pool.members()[0].store().unwrap().stats().latched);
    drop(pool);
    // The disk works again, and has what was acknowledged.
    check(&open(&disks), 0..60);
}

#[test]
fn disk_that_does_not_respond_keeps_few_calls_waiting() {
    let disks = disks();
    let (pool, hanging, on_it, others) = open_faulty(&disks);
    hanging.block(Op::Sync);
    thread::scope(|scope| {
        let put = |_| scope.spawn(|| try_put(&pool, on_it[0]));
        let waiting: Vec<_> = (0..16).map(put).collect();
        eventually("calls wait", || pool.members()[1].waiting().is_stalled());
        let rejected = try_put(&pool, on_it[0]).unwrap_err();
        assert!(matches!(rejected, Error::MemberStalled { calls: 16, .. }), "{rejected}");
        let deleted = pool.delete_many(BUCKET, &[&key(on_it[0]), &key(9_999), &key(on_it[1])]);
        let stalled = deleted.iter().filter(|it| matches!(it, Err(Error::MemberStalled { .. })));
        assert!(stalled.count() >= 2, "{deleted:?}");
        pool.create_bucket("other").unwrap_err();
        for number in &others {
            try_put(&pool, *number).unwrap();
        }
        // Its writes wait, and not its reads.
        check(&pool, 0..60);
        hanging.unblock();
        for put in waiting {
            put.join().unwrap().unwrap();
        }
    });
    assert_eq!(pool.members()[1].waiting(), Waiting::default());
    try_put(&pool, on_it[0]).unwrap();
    pool.create_bucket("other").unwrap();
}

/// Calls `work` in `count` threads, until `faulty` is unblocked. Meanwhile, after twice the time for
/// which a call may wait, calls `check`. Returns the number of calls that returned before.
fn while_calls_wait(
    faulty: &FaultyDisk,
    count: usize,
    work: impl Fn(usize) + Sync,
    check: impl FnOnce(),
) -> usize {
    let returned = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (work, returned) = (&work, &returned);
        for number in 0..count {
            scope.spawn(move || {
                work(number);
                returned.fetch_add(1, Relaxed);
            });
        }
        thread::sleep(Duration::from_secs(5));
        let before = returned.load(Relaxed);
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check));
        faulty.unblock();
        checked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        before
    })
}

/// Fails if calls are counted in other members than the second one.
fn assert_others_are_free(pool: &Pool) {
    for number in [0, 2] {
        assert_eq!(pool.members()[number].waiting(), Waiting::default(), "member {number}");
    }
}

#[test]
fn listings_that_wait_for_a_disk_are_counted_in_its_member_only() {
    let disks = disks();
    // Closing a store with so many changes writes the keys to the disk, from which they are listed.
    let pool = open(&disks);
    let keys: Vec<String> = (0..15_000).map(|number| format!("small{number}")).collect();
    let (attributes, precondition) = (&Attributes::new(), &Precondition::None);
    let small = |key| NewObject { key, bytes: b"x", attributes, precondition };
    let small: Vec<NewObject<'_>> = keys.iter().map(|key| small(key)).collect();
    pool.put_many(BUCKET, &small).into_iter().for_each(|put| drop(put.unwrap()));
    pool.close().unwrap();
    let (pool, hanging, _, others) = open_faulty(&disks);
    hanging.block(Op::Read);
    let request = haul_file_store::ListVersionsRequest { limit: 100, ..Default::default() };
    let list = |_| drop(pool.list_versions(BUCKET, &request));
    while_calls_wait(&hanging, 20, list, || {
        assert!(pool.members()[1].waiting().is_stalled());
        assert_others_are_free(&pool);
        others.iter().for_each(|number| drop(try_put(&pool, *number).unwrap()));
    });
    assert_eq!(listed(&pool, 1000).len(), 15_060);
}

#[test]
fn changes_of_buckets_that_wait_for_a_disk_are_counted_in_its_member_only() {
    let disks = disks();
    let (pool, hanging, _, others) = open_faulty(&disks);
    hanging.block(Op::Sync);
    let create = |number: usize| drop(pool.create_bucket(&format!("bucket-{number}")));
    let returned = while_calls_wait(&hanging, 40, create, || {
        assert_eq!(pool.members()[1].waiting().calls, 1);
        assert_others_are_free(&pool);
        others.iter().for_each(|number| drop(try_put(&pool, *number).unwrap()));
    });
    assert_eq!(returned, 39, "changes wait for a disk that hangs");
}

#[test]
fn deletion_of_a_bucket_that_waits_for_a_disk_does_not_hold_up_the_others() {
    let disks = disks();
    let (pool, hanging, on_it, others) = open_faulty(&disks);
    pool.create_bucket("other").unwrap();
    // The deletion waits for a writer of this disk, and the next one for its own sync.
    for has_writer in [true, false] {
        hanging.block(Op::Sync);
        let work = |number: usize| match number {
            0 if has_writer => drop(try_put(&pool, on_it[0]).unwrap()),
            _ => {
                thread::sleep(Duration::from_secs(1));
                drop(pool.delete_bucket("other"));
            }
        };
        while_calls_wait(&hanging, 2, work, || {
            let (sender, done) = std::sync::mpsc::channel();
            thread::scope(|scope| {
                scope.spawn(|| {
                    others.iter().for_each(|number| drop(try_put(&pool, *number).unwrap()));
                    sender.send(()).unwrap();
                });
                let done = done.recv_timeout(Duration::from_secs(10));
                hanging.unblock();
                done.expect("writes to the other disks wait");
            });
        });
    }
    let gone = pool.stores().filter(|store| store.bucket("other").is_ok()).count();
    assert_eq!(gone, 0, "a deletion has not ended");
}

#[test]
fn moves_that_wait_for_a_disk_are_not_counted_in_the_other_member() {
    let (first, second) = (MemoryDisk::default(), MemoryDisk::default());
    let pool = open(std::slice::from_ref(&first));
    pool.create_bucket(BUCKET).unwrap();
    fill(&pool, 0..60);
    pool.close().unwrap();
    let donor = FaultyDisk::new(Arc::new(first));
    let both: [Arc<dyn Disk>; 2] = [Arc::new(donor.clone()), Arc::new(second)];
    let pool = Pool::open_on(&both, &OpenWith::default(), &small()).unwrap().0;
    // The background does not move keys in time.
    donor.block(Op::Sync);
    let put = |number: usize| drop(try_put(&pool, number as u64));
    let delete = |number: usize| {
        drop(pool.delete_many(BUCKET, &[&key(number as u64), &key(number as u64 + 1)]));
    };
    let work = |number: usize| if number < 40 { put(number) } else { delete(number) };
    let returned = while_calls_wait(&donor, 60, work, || {
        assert_eq!(pool.members()[1].waiting(), Waiting::default());
        assert!(pool.members()[1].store().unwrap().stats().objects > 0, "no move has begun");
    });
    assert!(returned < 60, "no call waits for the disk");
    wait_for_moves(&pool);
}

/// Fails if a call does not return while a disk hangs.
#[track_caller]
fn assert_returns(what: &str, call: impl FnOnce() + Send + 'static) {
    let (sender, done) = std::sync::mpsc::channel();
    thread::spawn(move || {
        call();
        sender.send(()).ok();
    });
    done.recv_timeout(Duration::from_secs(10)).unwrap_or_else(|_| panic!("{what} waits"));
}

/// The gate of a store is closed for each checkpoint and each change of a bucket.
#[test]
fn moves_that_wait_for_a_disk_do_not_close_the_other_one() {
    for (hangs, op) in [(0, Op::Read), (0, Op::Sync), (1, Op::Sync)] {
        let disks = [MemoryDisk::default(), MemoryDisk::default()];
        let pool = open(&disks[..1]);
        pool.create_bucket(BUCKET).unwrap();
        fill(&pool, 0..60);
        pool.close().unwrap();
        let faulty = disks.each_ref().map(|disk| FaultyDisk::new(Arc::new(disk.clone())));
        let dirs = faulty.each_ref().map(|disk| Arc::new(disk.clone()) as Arc<dyn Disk>);
        let pool = Pool::open_on(&dirs, &OpenWith::default(), &small()).unwrap().0;
        let works = Arc::clone(pool.members()[1 - hangs].store().unwrap());
        faulty[hangs].block(op);
        let work = |number: usize| drop(try_put(&pool, number as u64));
        while_calls_wait(&faulty[hangs], 60, work, || {
            let (first, none) = (Arc::clone(&works), Attributes::new());
            assert_returns("a change of a bucket", move || first.create_bucket("direct").unwrap());
            assert_returns("a write", move || {
                drop(works.put("direct", "key", b"x", &none, &Precondition::None).unwrap());
            });
        });
        wait_for_moves(&pool);
        assert_eq!(listed(&pool, 50).len(), 60, "{op:?}");
    }
}

#[test]
fn full_disk_opens_and_gives_keys_to_a_new_one() {
    let disks = [(); 2].map(|()| MemoryDisk::default());
    let options = Options { stall_max: Duration::ZERO, ..small() };
    let pool = open_with(&disks, &options);
    pool.create_bucket(BUCKET).unwrap();
    disks[0].limit(Some(24 << 20));
    let mut number = 0;
    let is_full = |number| match try_put(&pool, number) {
        Ok(_) => false,
        Err(Error::Full { .. } | Error::Stalled { .. }) => true,
        Err(error) => panic!("{error}"),
    };
    while !is_full(number) {
        number += 1;
    }
    let failures = pool.ongoing_failures();
    let full = pool.members()[0].dir().display().to_string();
    let is_named = |failure: &OngoingFailure| failure.reason.starts_with(&full);
    assert!(!failures.is_empty() && failures.iter().all(is_named), "{failures:?}");
    // Nothing is left, not even for a small file.
    disks[0].limit(Some(disks[0].used_bytes()));
    check(&pool, 0..number);
    pool.close().unwrap();
    let pool = open_with(&disks, &options);
    assert!(pool.members().iter().all(|member| member.why_missing().is_none()));
    check(&pool, 0..number);
    pool.close().unwrap();

    let three = [disks[0].clone(), disks[1].clone(), MemoryDisk::default()];
    let pool = open_with(&three, &options);
    wait_for_moves(&pool);
    check(&pool, 0..number);
    let before = pool.members()[2].store().unwrap().bucket(BUCKET).unwrap().objects;
    assert!(before > number / 6, "{before} of {number} objects moved");
    pool.close().unwrap();
    check(&open_with(&three, &options), 0..number);
}

#[test]
fn damage_to_one_copy_of_the_table_costs_nothing() {
    let disks = disks();
    let length = disks[1].open("POOL", haul_disk::Open::default()).unwrap().bytes().unwrap();
    assert_eq!(length, 16 << 10);
    for (number, name) in ["POOL", "POOL.copy"].iter().enumerate() {
        for offset in [0, 20, 90, 200, length - 1] {
            disks[1].rot(name, offset, u8::try_from(number).unwrap());
            let pool = open(&disks);
            assert_eq!(pool.members()[1].why_missing(), None, "{name} at {offset}");
            check(&pool, 0..60);
            // Opening has mended it.
            pool.close().unwrap();
        }
        disks[1].remove(name).unwrap();
        open(&disks).close().unwrap();
        assert!(disks[1].list("").unwrap().contains(&(*name).to_owned()), "{name} is not back");
    }
}

#[test]
fn member_without_an_intact_table_is_missing() {
    let disks = disks();
    let names = ["POOL", "POOL.copy"];
    names.iter().for_each(|name| disks[1].rot(name, 50, 3));
    let pool = open(&disks);
    let why = pool.members()[1].why_missing().unwrap();
    assert!(why.starts_with("no copy of its table, POOL or POOL.copy, is intact"), "{why}");
    let served = (0..60).filter(|number| get(&pool, &key(*number)).is_ok()).count();
    assert!((20..55).contains(&served), "{served}");
    drop(pool);
    names.iter().for_each(|name| disks[1].remove(name).unwrap());
    let dirs: Vec<Arc<dyn Disk>> = disks.iter().map(|disk| Arc::new(disk.clone()) as _).collect();
    // All three have the same path in memory, so that the place of the missing one is not known.
    let pool = Pool::open_on(&dirs, &OpenWith::default(), &small()).unwrap().0;
    let why = pool.members()[1].why_missing().unwrap();
    assert!(why.contains("lost the files that say to which pool it belongs"), "{why}");
    put(&pool, &key((0..60).find(|number| get(&pool, &key(*number)).is_ok()).unwrap()), b"");
}

#[test]
fn key_that_cannot_be_moved_stays_where_it_is() {
    let first = MemoryDisk::default();
    let pool = open(std::slice::from_ref(&first));
    pool.create_bucket(BUCKET).unwrap();
    fill(&pool, 0..60);
    pool.close().unwrap();
    // The content of one big object is damaged, which only a move of its key reads.
    let file = first.list("objects").unwrap().remove(0);
    first.rot(&format!("objects/{file}"), 5000, 1);
    let both = [first, MemoryDisk::default()];
    // Which keys move depends on the pool: at most a few pools leave the damaged one where it is.
    for _ in 0..40 {
        let tried = both.each_ref().map(|disk| MemoryDisk::on(&disk.medium()));
        let pool = open(&tried);
        eventually("all other keys are moved", || {
            let progress = pool.move_progress().unwrap();
            progress.failures > 0 || progress.slots_left == 0
        });
        let progress = pool.move_progress().unwrap();
        let read = |number: u64| get(&pool, &key(number));
        let lost = (0..60).filter(|number| matches!(read(*number), Err(Error::NoSuchKey { .. })));
        assert_eq!(lost.count(), 0);
        let damaged = (0..60).filter(|number| matches!(read(*number), Err(Error::Damaged { .. })));
        assert_eq!(damaged.count(), 1);
        if progress.failures > 0 {
            assert!(progress.slots_left > 0, "the moves ended without a key");
            assert!(progress.last_error.unwrap().contains(&file));
            return;
        }
    }
    panic!("the damaged object never moves");
}
