//! Disks that die, are full, or lose the files of the pool.

use std::sync::Arc;
use std::thread;

use haul_disk::{Disk, Op};
use haul_disk_sim::{FaultyDisk, MemoryDisk};
use haul_file_store::{Attributes, Error, ObjectInfo, OngoingFailure, Options, Precondition};
use haul_store_pool::{OpenWith, Pool, Waiting};
use haul_testing::eventually;
use rustix::io::Errno;

use crate::{BUCKET, check, content, fill, get, key, put, small, wait_for_moves};

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

#[test]
fn full_disk_opens_and_gives_keys_to_a_new_one() {
    let disks = [(); 2].map(|()| MemoryDisk::default());
    let options = Options { stall_max: std::time::Duration::ZERO, ..small() };
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
