//! Missing members, and directories that do not fit.

use std::path::PathBuf;

use haul_disk_sim::MemoryDisk;
use haul_file_store::{
    Attributes, Deletion, Error, ListRequest, NewBucket, Precondition, Versioning,
};
use haul_store_pool::{OpenWith, Pool};

use crate::{
    BUCKET, check, content, dirs, fill, get, key, listed, open, open_at, put, refusal, small,
};

/// Opens a pool of which the member in directory 1 is missing.
fn without_one(disk: &MemoryDisk, objects: u64) -> Pool {
    let pool = open(disk, 0..3);
    pool.create_bucket(BUCKET).unwrap();
    fill(&pool, 0..objects);
    pool.close().unwrap();
    open(disk, [0, 2])
}

fn is_missing<T: std::fmt::Debug>(result: Result<T, Error>) -> bool {
    let error = result.unwrap_err();
    assert!(matches!(error, Error::MemberMissing { .. }), "{error}");
    true
}

#[test]
fn keys_of_a_missing_member_are_not_absent_and_others_are_served() {
    let disk = MemoryDisk::default();
    let pool = without_one(&disk, 120);
    let why = pool.members()[1].why_missing().unwrap();
    assert_eq!(why, "no directory that was given has it");
    assert_eq!(pool.members()[1].dir().file_name().unwrap(), "d1");
    let mut served = 0;
    for number in 0..120 {
        match get(&pool, &key(number)) {
            Ok(bytes) => {
                assert_eq!(bytes, content(number));
                put(&pool, &key(number), &content(number));
                assert!(pool.stat(BUCKET, &key(number)).is_ok());
                served += 1;
            }
            Err(error) => {
                assert!(matches!(error, Error::MemberMissing { .. }), "{error}");
                let (key, none) = (key(number), Attributes::new());
                assert!(is_missing(pool.stat(BUCKET, &key)));
                assert!(is_missing(pool.put(BUCKET, &key, b"", &none, &Precondition::None)));
                assert!(is_missing(pool.start_put(BUCKET, &key, b"", &none, &Precondition::None)));
                assert!(is_missing(pool.delete(BUCKET, &key)));
                assert!(is_missing(pool.start_upload(BUCKET, &key, &none)));
                assert!(is_missing(pool.object_writer(BUCKET, &key, None)));
                assert_eq!(pool.location(BUCKET, &key), None);
            }
        }
    }
    assert!((60..=100).contains(&served), "{served}");
    let request = ListRequest { limit: 10, ..ListRequest::default() };
    assert!(is_missing(pool.list(BUCKET, &request)));
    let keys: Vec<String> = (0..120).map(key).collect();
    let deletions: Vec<Deletion<'_>> = keys.iter().map(|key| Deletion::of(key)).collect();
    let deleted = pool.delete_objects(BUCKET, &deletions[..10]);
    assert!(deleted.iter().any(Result::is_ok) && deleted.iter().any(Result::is_err));
    for (number, result) in deleted.iter().enumerate() {
        if result.is_ok() {
            put(&pool, &keys[number], &content(number as u64));
        }
    }
    pool.close().unwrap();
    check(&open(&disk, 0..3), 0..120);
}

#[test]
fn buckets_do_not_change_while_a_member_is_missing() {
    let disk = MemoryDisk::default();
    let pool = without_one(&disk, 0);
    assert!(is_missing(pool.create_bucket("other")));
    assert!(is_missing(pool.delete_bucket(BUCKET)));
    assert!(is_missing(pool.set_bucket_setting(BUCKET, "owner", Some("ann"))));
    assert!(is_missing(pool.set_versioning(BUCKET, Versioning::Enabled)));
    assert_eq!(pool.buckets().unwrap().len(), 1);
    assert_eq!(pool.versioning(BUCKET).unwrap(), Versioning::Off);
    pool.close().unwrap();
    let pool = open(&disk, 0..3);
    pool.create_bucket_with("other", &NewBucket::with_object_lock(Attributes::new())).unwrap();
    assert!(pool.stores().all(|store| store.has_object_lock("other").unwrap()));
    let ids: Vec<_> = pool.stores().map(|store| store.bucket_id("other").unwrap()).collect();
    assert!(ids.iter().all(|id| *id == ids[0]));
}

fn accept(lost: &PathBuf) -> OpenWith<'_> {
    OpenWith { lost: std::slice::from_ref(lost), ..OpenWith::default() }
}

#[test]
fn loss_of_a_member_can_be_accepted() {
    let disk = MemoryDisk::default();
    let pool = without_one(&disk, 120);
    let lost = pool.members()[1].dir().to_owned();
    let is_lost = |number: &u64| get(&pool, &key(*number)).is_err();
    let (gone, kept): (Vec<u64>, Vec<u64>) = (0..120).partition(is_lost);
    pool.close().unwrap();
    let there = Pool::open_on(&dirs(&disk, 0..3), &accept(&lost), &small());
    let there = there.unwrap_err().to_string();
    assert!(there.contains("d1 is not missing"), "{there}");
    let two = Pool::open_on(&dirs(&disk, [0]), &accept(&lost), &small()).unwrap_err();
    assert!(two.to_string().contains("d2 is missing, and its loss is not accepted"), "{two}");

    for _ in 0..2 {
        // A server is started again with the same options.
        let accepted = Pool::open_on(&dirs(&disk, [0, 2]), &accept(&lost), &small()).unwrap().0;
        assert_eq!(accepted.members().len(), 2);
        accepted.close().unwrap();
    }
    let accepted = open(&disk, [0, 2]);
    for number in &gone {
        let absent = get(&accepted, &key(*number)).unwrap_err();
        assert!(matches!(absent, Error::NoSuchKey { .. }), "{absent}");
    }
    assert_eq!(listed(&accepted, 7).len(), kept.len());
    accepted.create_bucket("other").unwrap();
    for number in &gone {
        put(&accepted, &key(*number), &content(*number));
    }
    check(&accepted, 0..120);
    accepted.close().unwrap();
    check(&open(&disk, [0, 2]), 0..120);
    let back = refusal(&disk, 0..3);
    assert!(back.contains("d1 is no longer a member of the pool"), "{back}");
}

#[test]
fn empty_directory_in_place_of_a_member_stays_empty() {
    let disk = MemoryDisk::default();
    drop(without_one(&disk, 10));
    let pool = open(&disk, [0, 7, 2]);
    assert!(pool.members()[1].why_missing().is_some());
    drop(pool);
    assert_eq!(haul_disk::Disk::list(&disk, "d7").unwrap(), Vec::<String>::new());
    check(&open(&disk, 0..3), 0..10);
}

#[test]
fn directories_that_do_not_form_a_pool_are_refused() {
    let disk = MemoryDisk::default();
    drop(open(&disk, 0..2));
    drop(open(&disk, 2..4));
    let different = refusal(&disk, [0, 1, 2]);
    assert!(different.contains("members of different pools"), "{different}");

    let own = open(&disk, [4]);
    own.create_bucket(BUCKET).unwrap();
    own.close().unwrap();
    let joining = refusal(&disk, [0, 1, 4]);
    assert!(joining.contains("d4 has a store with buckets, which cannot join a pool"), "{joining}");
    let two = open(&disk, [5]);
    two.create_bucket(BUCKET).unwrap();
    two.close().unwrap();
    let two = refusal(&disk, [5, 4]);
    assert!(two.contains("d4 has a store with buckets, which cannot join a pool"), "{two}");
    // The attempts changed nothing.
    assert_eq!(open(&disk, [4]).buckets().unwrap().len(), 1);
    let missing = refusal(&disk, [0, 4]);
    assert!(missing.contains("does not belong to the pool, of which a member is missing"));
    let none = Pool::open_on(&[], &OpenWith::default(), &small()).unwrap_err();
    assert!(none.to_string().contains("at least one directory"), "{none}");
    let in_use = open(&disk, 0..2);
    let error = Pool::open_on(&dirs(&disk, [1]), &OpenWith::default(), &small()).unwrap_err();
    assert!(matches!(error, Error::InUse { .. }), "{error}");
    drop(in_use);
}

#[test]
fn disk_that_is_at_its_place_is_not_given_up_although_it_was_not_given() {
    let parent = tempfile::tempdir().unwrap();
    let dirs: Vec<_> = ["d0", "d1"].map(|name| parent.path().join(name)).into();
    let options = small();
    let pool = Pool::open(&dirs, &options).unwrap().0;
    pool.create_bucket(BUCKET).unwrap();
    fill(&pool, 0..40);
    pool.close().unwrap();
    let given_up = |lost| Pool::open_with(&dirs[..1], &accept(lost), &options);
    let refused = given_up(&dirs[1]).unwrap_err().to_string();
    assert!(refused.contains("d1 has a disk of the store, which is not lost"), "{refused}");
    check(&Pool::open(&dirs, &options).unwrap().0, 0..40);
    std::fs::rename(&dirs[1], parent.path().join("elsewhere")).unwrap();
    let (pool, report) = given_up(&dirs[1]).unwrap();
    assert_eq!(report.given_up, [&*dirs[1]]);
    pool.close().unwrap();
    let (pool, report) = given_up(&dirs[1]).unwrap();
    assert!(report.given_up.is_empty(), "it was given up before");
    drop(pool);
    // What the lost one has can still be read, apart from the others.
    std::fs::rename(parent.path().join("elsewhere"), &dirs[1]).unwrap();
    let alone = Pool::open_with(&dirs[1..], &accept(&dirs[0]), &options).unwrap().0;
    let mut all = listed(&alone, 1000);
    drop(alone);
    let both = Pool::open(&dirs, &options).unwrap_err().to_string();
    assert!(both.contains("went on without each other"), "{both}");
    all.extend(listed(&Pool::open(&dirs[..1], &options).unwrap().0, 1000));
    all.sort();
    let mut expected: Vec<_> = (0..40).map(key).collect();
    expected.sort();
    assert_eq!(all, expected);
}

#[test]
fn directory_with_a_damaged_table_is_no_store_of_its_own() {
    let parent = tempfile::tempdir().unwrap();
    let dirs: Vec<_> = ["d0", "d1"].map(|name| parent.path().join(name)).into();
    let pool = Pool::open(&dirs, &small()).unwrap().0;
    pool.create_bucket(BUCKET).unwrap();
    pool.close().unwrap();
    for name in ["POOL", "POOL.copy"] {
        std::fs::write(dirs[0].join(name), "damaged").unwrap();
    }
    // The keys of the other member would be absent.
    let refused = Pool::open(&dirs[..1], &small()).unwrap_err().to_string();
    assert!(refused.contains("no copy of its table"), "{refused}");
}

#[test]
fn member_that_was_leaving_stays_if_all_others_are_lost() {
    let disk = MemoryDisk::default();
    let mut pool = open_at(&disk, 0..2, 1);
    pool.create_bucket(BUCKET).unwrap();
    fill(&pool, 0..60);
    let [leaving, lost] = [0, 1].map(|position: usize| pool.members()[position].dir().to_owned());
    pool.remove_member(&leaving).unwrap();
    pool.close().unwrap();
    let pool = Pool::open_on(&dirs(&disk, [0]), &accept(&lost), &small()).unwrap().0;
    assert_eq!((pool.members().len(), pool.move_progress().unwrap().slots_left), (1, 0));
    put(&pool, "new", b"");
    assert!(!listed(&pool, 10).is_empty());
}

#[test]
fn member_that_left_does_not_become_another_pool() {
    let disk = MemoryDisk::default();
    let mut pool = open(&disk, 0..2);
    pool.create_bucket(BUCKET).unwrap();
    fill(&pool, 0..20);
    let leaving = pool.members()[0].dir().to_owned();
    pool.remove_member(&leaving).unwrap();
    crate::wait_for_moves(&pool);
    pool.close().unwrap();
    drop(open(&disk, 0..2));
    // The disk of the other one is not mounted.
    for dirs in [vec![0], vec![0, 7], vec![7, 0]] {
        let refused = refusal(&disk, dirs);
        assert!(refused.contains("d0 has no keys of its pool"), "{refused}");
    }
    check(&open(&disk, [1]), 0..20);
}

#[test]
fn one_directory_is_a_store_of_its_own() {
    let disk = MemoryDisk::default();
    let pool = open(&disk, [0]);
    pool.create_bucket(BUCKET).unwrap();
    fill(&pool, 0..20);
    check(&pool, 0..20);
    assert!(pool.own_store().is_some());
    assert_eq!(pool.move_progress(), None);
    pool.close().unwrap();
    let names = haul_disk::Disk::list(&disk, "d0").unwrap();
    assert!(!names.iter().any(|name| name.starts_with("POOL")), "{names:?}");
}
