//! Changes of buckets, interrupted at every step.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use haul_disk_sim::{Crash, Crashes, Device, MemoryDisk, crash_everywhere};
use haul_file_store::{
    Attributes, Error, Expiry, Lifecycle, LifecycleRule, NewBucket, Quota, Versioning,
};
use haul_store_pool::{OpenWith, Pool};

use crate::{BUCKET, fill, open};

/// The changes so far, as numbers of acknowledged ones.
struct Acknowledged(usize);

fn lifecycle() -> Lifecycle {
    let rule = LifecycleRule {
        id: "rule".to_owned(),
        enabled: true,
        prefix: "tmp/".to_owned(),
        expire: Some(Expiry::After(Duration::from_hours(24))),
        ..LifecycleRule::default()
    };
    Lifecycle { rules: vec![rule] }
}

type Change = fn(&Pool) -> haul_file_store::Result<()>;

const CHANGES: [Change; 8] = [
    |pool| pool.create_bucket_with(BUCKET, &Attributes::from_iter([("owner", "ann")]).into()),
    |pool| pool.set_bucket_setting(BUCKET, "policy", Some("all")),
    |pool| pool.set_versioning(BUCKET, Versioning::Enabled),
    |pool| pool.set_lifecycle(BUCKET, &lifecycle()),
    |pool| pool.set_quota(BUCKET, Quota { bytes: Some(7), objects: None }),
    |pool| pool.set_bucket_setting(BUCKET, "owner", None),
    |pool| pool.delete_bucket(BUCKET),
    |pool| {
        pool.create_bucket_with(BUCKET, &NewBucket::with_object_lock(Attributes::new()))?;
        Ok(())
    },
];

/// Returns what each member has of the bucket, as text.
fn states(pool: &Pool) -> Vec<String> {
    let state = |store: &haul_file_store::Store| match store.bucket_id(BUCKET) {
        Err(Error::NoSuchBucket { .. }) => "none".to_owned(),
        id => format!(
            "{:?} {:?} {:?} {:?} {:?} {:?}",
            id.unwrap(),
            **store.bucket_settings(BUCKET).unwrap(),
            store.lifecycle(BUCKET).unwrap(),
            store.versioning(BUCKET).unwrap(),
            store.has_object_lock(BUCKET).unwrap(),
            store.quota(BUCKET).unwrap().quota,
        ),
    };
    pool.stores().map(state).collect()
}

/// Returns the state without the bucket's identity, which differs between runs.
fn without_id(state: &str) -> &str {
    state.split_once(") ").map_or(state, |(_, rest)| rest)
}

fn recover(after: &[String], crash: &Crash, checked: &Cell<u64>) {
    let Some(Acknowledged(count)) = crash.notes().last() else { return };
    checked.set(checked.get() + 1);
    let pool = open(&crash.disk, 0..3);
    let states = states(&pool);
    assert!(states.iter().all(|state| *state == states[0]), "{states:#?}");
    let state = without_id(&states[0]);
    let allowed = &after[*count..(count + 2).min(after.len())];
    assert!(allowed.iter().any(|allowed| without_id(allowed) == state), "{state}\n{allowed:#?}");
    // Buckets can be changed again.
    match pool.create_bucket("other") {
        Ok(()) | Err(Error::BucketExists { .. }) => {}
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn crash_during_a_change_leaves_the_same_buckets_in_all_members() {
    let crashes = Crashes {
        steps: 250,
        worst: Device::StaleBlocks,
        all_up_to: 2,
        draws: 1,
        again_one_in: 32,
        again_steps: 4,
        ..Crashes::default()
    };
    let checked = Cell::new(0);
    let run = |disk: &MemoryDisk| {
        let pool = open(disk, 0..3);
        let mut after = vec![states(&pool)[0].clone()];
        disk.note(Acknowledged(0));
        for (number, change) in CHANGES.iter().enumerate() {
            change(&pool).unwrap();
            disk.note(Acknowledged(number + 1));
            after.push(states(&pool)[0].clone());
        }
        after
    };
    crash_everywhere(&crashes, run, |after, crash| recover(after, crash, &checked));
    assert!(checked.get() > 100, "{} states", checked.get());
}

#[test]
fn bucket_that_was_used_while_a_deletion_was_in_doubt_is_kept() {
    let disk = MemoryDisk::default();
    let pool = open(&disk, 0..3);
    pool.create_bucket(BUCKET).unwrap();
    pool.close().unwrap();
    // The deletion reached the first member only, which then is missing.
    let first =
        Pool::open_on(&crate::dirs(&disk, [0]), &OpenWith::default(), &crate::small()).unwrap().0;
    first.stores().next().unwrap().delete_bucket(BUCKET).unwrap();
    first.close().unwrap();
    let rest = open(&disk, 1..3);
    let numbers: Vec<u64> = (0..60)
        .filter(|number| {
            let key = crate::key(*number);
            let none = Attributes::new();
            let content = crate::content(*number);
            rest.put(BUCKET, &key, &content, &none, &haul_file_store::Precondition::None).is_ok()
        })
        .collect();
    assert!(numbers.len() > 10);
    rest.close().unwrap();
    let pool = open(&disk, 0..3);
    for number in &numbers {
        assert_eq!(crate::get(&pool, &crate::key(*number)).unwrap(), crate::content(*number));
    }
    fill(&pool, 0..60);
    crate::check(&pool, 0..60);
    let states = states(&pool);
    assert!(states.iter().all(|state| *state == states[0]), "{states:#?}");
}

#[test]
fn full_bucket_is_deleted_from_no_member() {
    let pool = open(&MemoryDisk::default(), 0..3);
    pool.create_bucket(BUCKET).unwrap();
    // The only object is in one member.
    crate::put(&pool, "key", b"x");
    let error = pool.delete_bucket(BUCKET).unwrap_err();
    assert!(matches!(error, Error::BucketNotEmpty { .. }), "{error}");
    assert!(pool.stores().all(|store| store.bucket(BUCKET).is_ok()));
    pool.delete(BUCKET, "key").unwrap();
    pool.delete_bucket(BUCKET).unwrap();
    assert!(pool.stores().all(|store| store.bucket(BUCKET).is_err()));
}

/// Makes a change in one member only, as if it had failed in the others.
fn change_one(pool: &Pool, member: usize, change: Change) {
    change(&Pool::from(Arc::clone(pool.members()[member].store().unwrap()))).unwrap();
}

#[track_caller]
fn assert_equal_members(pool: &Pool) {
    let states = states(pool);
    assert!(states.iter().all(|state| *state == states[0]), "{states:#?}");
}

#[test]
fn change_that_failed_in_some_members_succeeds_when_it_is_repeated() {
    let pool = open(&MemoryDisk::default(), 0..3);
    for (number, change) in CHANGES.iter().enumerate() {
        change_one(&pool, 0, *change);
        change(&pool).unwrap_or_else(|error| panic!("change {number}: {error}"));
        assert_equal_members(&pool);
    }
}

#[test]
fn deletion_that_failed_in_any_member_succeeds_when_it_is_repeated() {
    for member in 0..3 {
        let pool = open(&MemoryDisk::default(), 0..3);
        pool.create_bucket(BUCKET).unwrap();
        change_one(&pool, member, |pool| pool.delete_bucket(BUCKET));
        pool.delete_bucket(BUCKET).unwrap();
        assert!(pool.stores().all(|store| store.bucket(BUCKET).is_err()));
        let gone = pool.delete_bucket(BUCKET).unwrap_err();
        assert!(matches!(gone, Error::NoSuchBucket { .. }), "{gone}");
    }
}

#[test]
fn change_after_another_one_that_failed_finds_equal_members() {
    for number in 1..6 {
        let pool = open(&MemoryDisk::default(), 0..3);
        CHANGES[..number].iter().for_each(|change| change(&pool).unwrap());
        change_one(&pool, 0, CHANGES[number]);
        pool.set_bucket_setting(BUCKET, "website", Some("on")).unwrap();
        assert_equal_members(&pool);
    }
}

#[test]
fn bucket_whose_creation_failed_is_kept_once_it_has_objects() {
    let pool = open(&MemoryDisk::default(), 0..3);
    change_one(&pool, 0, CHANGES[0]);
    let none = Attributes::new();
    let put = |number: &u64| {
        let always = haul_file_store::Precondition::None;
        pool.put(BUCKET, &crate::key(*number), b"x", &none, &always).is_ok()
    };
    let stored: Vec<u64> = (0..60).filter(put).collect();
    assert!((1..60).contains(&stored.len()), "{stored:?}");
    let exists = pool.create_bucket(BUCKET).unwrap_err();
    assert!(matches!(exists, Error::BucketExists { .. }), "{exists}");
    assert_equal_members(&pool);
    assert!(stored.iter().all(|number| crate::get(&pool, &crate::key(*number)).is_ok()));
    assert_eq!((0..60).filter(put).count(), 60);
}

#[test]
fn bucket_is_created_once_a_full_disk_has_space_again() {
    let disks = [(); 3].map(|()| MemoryDisk::default());
    let dirs = disks.each_ref().map(|disk| Arc::new(disk.clone()) as Arc<dyn haul_disk::Disk>);
    let options = haul_file_store::Options { stall_max: Duration::ZERO, ..crate::small() };
    let pool = Pool::open_on(&dirs, &OpenWith::default(), &options).unwrap().0;
    pool.create_bucket("full").unwrap();
    disks[1].limit(Some(disks[1].used_bytes()));
    let (store, none) = (pool.members()[1].store().unwrap(), Attributes::new());
    let is_put = |number: u64| {
        let always = haul_file_store::Precondition::None;
        store.put("full", &number.to_string(), &[0; 50_000], &none, &always).is_ok()
    };
    assert!(!(0..1000).all(is_put), "the disk is not full");
    let policy = "x".repeat(60_000);
    let new = NewBucket::from(Attributes::from_iter([("policy", &*policy)]));
    let full = pool.create_bucket_with(BUCKET, &new).unwrap_err();
    assert!(matches!(full, Error::Full { .. } | Error::Stalled { .. }), "{full}");
    disks[1].limit(None);
    pool.create_bucket_with(BUCKET, &new).unwrap();
    assert_equal_members(&pool);
    pool.close().unwrap();
}
