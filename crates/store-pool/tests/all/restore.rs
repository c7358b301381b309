//! A pool whose disks are all lost, and which is restored from the copies of its members.

use std::collections::BTreeSet;
use std::path::PathBuf;

use haul_disk::{Locked, Open};
use haul_disk_sim::MemoryDisk;
use haul_file_store::{Attributes, Error, Precondition, Result, Versioning};
use haul_store_pool::{
    FoundCopy, Member, OpenWith, Pool, RestoredPool, restore_pool, restore_pool_on,
};

use crate::refill::DirCopies;
use crate::{BUCKET, check, content, dirs, fill, get, key, listed, refusal, small, wait_for_moves};

/// The first directory into which a pool is restored.
pub(crate) const NEW: usize = 10;

/// Opens the pool in these directories, of which copies are kept.
pub(crate) fn open(disk: &MemoryDisk, numbers: impl IntoIterator<Item = usize>) -> Pool {
    open_with(disk, numbers, 0)
}

/// Opens the pool, and moves few keys before it is closed again.
fn open_slowly(disk: &MemoryDisk, numbers: impl IntoIterator<Item = usize>) -> Pool {
    open_with(disk, numbers, 1)
}

fn open_with(disk: &MemoryDisk, numbers: impl IntoIterator<Item = usize>, move_rate: u64) -> Pool {
    let copies = DirCopies::new(disk);
    let with = OpenWith { copies: Some(&copies), move_rate, ..OpenWith::default() };
    Pool::open_on(&dirs(disk, numbers), &with, &small()).unwrap().0
}

/// Returns the copies of these members.
pub(crate) fn found(disk: &MemoryDisk, members: &[u16]) -> Vec<FoundCopy> {
    let copies = DirCopies::new(disk);
    let find = |member: &u16| FoundCopy {
        member: *member,
        written_ms: copies.written_ms(*member),
        membership: copies.membership(*member),
    };
    members.iter().map(find).collect()
}

/// Restores the pool into new directories.
pub(crate) fn restore(
    disk: &MemoryDisk,
    found: &[FoundCopy],
    count: usize,
) -> Result<RestoredPool> {
    restore_pool_on(&dirs(disk, NEW..NEW + count), found, &DirCopies::new(disk), &small())
}

fn save(disk: &MemoryDisk, members: impl IntoIterator<Item = u16>) {
    members.into_iter().for_each(|member| DirCopies::new(disk).save(member));
}

#[test]
fn everything_is_back_and_the_lost_disks_are_refused() {
    let disk = MemoryDisk::default();
    let pool = open(&disk, 0..3);
    pool.create_bucket(BUCKET).unwrap();
    pool.create_bucket("versions").unwrap();
    pool.set_bucket_setting(BUCKET, "owner", Some("ann")).unwrap();
    pool.set_versioning("versions", Versioning::Enabled).unwrap();
    fill(&pool, 0..60);
    let none = Attributes::new();
    for number in 0..20 {
        for bytes in [b"one", b"two"] {
            pool.put("versions", &key(number), bytes, &none, &Precondition::None).unwrap();
        }
        pool.delete("versions", &key(number)).unwrap();
        pool.start_upload("versions", &format!("upload{number}"), &none).unwrap();
    }
    let numbers = |pool: &Pool| pool.members().iter().map(Member::number).collect::<Vec<_>>();
    let before = (pool.stats().objects, pool.stats().uploads, numbers(&pool));
    pool.close().unwrap();
    save(&disk, 0..3);

    let restored = restore(&disk, &found(&disk, &[0, 1, 2]), 3).unwrap();
    assert_eq!(restored.moving_slots, 0);
    assert_eq!(restored.members.iter().map(|it| it.number).collect::<Vec<_>>(), [0, 1, 2]);
    let used = restore(&disk, &found(&disk, &[0, 1, 2]), 3).unwrap_err().to_string();
    assert!(used.contains("is not empty"), "{used}");
    let pool = open(&disk, NEW..NEW + 3);
    check(&pool, 0..60);
    assert_eq!((pool.stats().objects, pool.stats().uploads, numbers(&pool)), before);
    assert_eq!(pool.bucket_settings(BUCKET).unwrap().get("owner"), Some("ann"));
    for number in 0..20 {
        let page = pool.list_versions(
            "versions",
            &haul_file_store::ListVersionsRequest {
                prefix: &key(number),
                limit: 10,
                ..Default::default()
            },
        );
        assert!(page.unwrap().entries.len() >= 3);
    }
    fill(&pool, 60..90);
    pool.close().unwrap();
    let mixed = refusal(&disk, [0, NEW + 1, NEW + 2]);
    assert!(mixed.contains("members of different pools"), "{mixed}");

    // The restored pool is lost, too; another disk has joined it.
    let pool = open(&disk, NEW..NEW + 4);
    wait_for_moves(&pool);
    pool.close().unwrap();
    for member in 0..4 {
        DirCopies::new(&disk).save_from(member, NEW + usize::from(member));
    }
    let dirs = dirs(&disk, 20..24);
    restore_pool_on(&dirs, &found(&disk, &[0, 1, 2, 3]), &DirCopies::new(&disk), &small()).unwrap();
    check(&open(&disk, 20..24), 0..90);
}

#[test]
fn member_that_has_left_is_not_restored() {
    let disk = MemoryDisk::default();
    let mut pool = open(&disk, 0..3);
    pool.create_bucket(BUCKET).unwrap();
    fill(&pool, 0..60);
    let gone = pool.members()[1].dir().to_owned();
    pool.remove_member(&gone).unwrap();
    wait_for_moves(&pool);
    pool.close().unwrap();
    save(&disk, 0..3);
    open(&disk, 0..3).close().unwrap();
    save(&disk, [0, 2]);
    let all = found(&disk, &[0, 1, 2]);
    let three = restore(&disk, &all, 3).unwrap_err().to_string();
    assert!(three.contains("is 3, and the pool has 2 members (member-0, member-2)"), "{three}");
    restore(&disk, &all, 2).unwrap();
    let pool = open(&disk, NEW..NEW + 2);
    check(&pool, 0..60);
    pool.close().unwrap();
    // The next number is not that of the member that has left.
    let pool = open(&disk, [NEW, NEW + 1, 30]);
    assert_eq!(pool.members()[2].number(), 3);
}

#[test]
fn restore_that_does_not_fit_changes_nothing() {
    let disk = MemoryDisk::default();
    let pool = open(&disk, 0..3);
    pool.create_bucket(BUCKET).unwrap();
    fill(&pool, 0..30);
    pool.close().unwrap();
    save(&disk, 0..3);
    let refused = |members: &[u16], count: usize, why: &str| {
        let error = restore(&disk, &found(&disk, members), count).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        for dir in dirs(&disk, NEW..NEW + count) {
            assert_eq!(dir.list("").unwrap(), Vec::<String>::new());
        }
    };
    refused(&[0, 2], 2, "there is no copy of member-1, whose keys would be lost");
    refused(&[0, 1, 2], 2, "is 2, and the pool has 3 members (member-0, member-1, member-2)");
    refused(&[], 1, "there is no copy of a member");
    let twice = vec![dirs(&disk, [NEW]).remove(0); 3];
    let error =
        restore_pool_on(&twice, &found(&disk, &[0, 1, 2]), &DirCopies::new(&disk), &small());
    assert!(error.unwrap_err().to_string().contains("given twice"));
}

#[test]
fn two_restores_into_the_same_directory_exclude_each_other() {
    let disk = MemoryDisk::default();
    open(&disk, 0..2).close().unwrap();
    save(&disk, 0..2);
    let dir = dirs(&disk, [NEW + 1]).remove(0);
    dir.create("POOL.refill", Open::default()).unwrap();
    let Locked::Acquired(lock) = dir.lock("POOL.refill", "another restore").unwrap() else {
        panic!("it is locked")
    };
    let refused = restore(&disk, &found(&disk, &[0, 1]), 2).unwrap_err();
    assert!(matches!(refused, Error::InUse { .. }), "{refused}");
    drop(lock);
    restore(&disk, &found(&disk, &[0, 1]), 2).unwrap();
}

/// Returns the keys that each of two members has.
fn held(pool: &Pool) -> Vec<BTreeSet<String>> {
    let keys = |store: &haul_file_store::Store| -> BTreeSet<String> {
        store.stored_keys(BUCKET, None, 1000).unwrap().into_iter().collect()
    };
    pool.stores().map(keys).collect()
}

#[test]
fn key_that_moved_after_the_copy_of_its_old_member_is_in_its_newest_state() {
    let disk = MemoryDisk::default();
    let pool = open(&disk, 0..1);
    pool.create_bucket(BUCKET).unwrap();
    fill(&pool, 0..120);
    pool.close().unwrap();
    open_slowly(&disk, 0..2).close().unwrap();
    save(&disk, [0]);
    let pool = open(&disk, 0..2);
    wait_for_moves(&pool);
    for number in 0..120 {
        crate::put(&pool, &key(number), &content(number + 1000));
    }
    let moved = held(&pool).remove(1);
    pool.close().unwrap();
    save(&disk, [1]);
    assert!((20..100).contains(&moved.len()), "{}", moved.len());
    // The states of the keys count, and not the time of the copy.
    DirCopies::new(&disk).set_time(0, 500);
    let restored = restore(&disk, &found(&disk, &[0, 1]), 2).unwrap();
    assert!(restored.moving_slots > 0);
    let pool = open(&disk, NEW..NEW + 2);
    for _ in 0..2 {
        for number in 0..120 {
            // The copy of member 0 is older than its last changes.
            let newest = if moved.contains(&key(number)) { number + 1000 } else { number };
            assert_eq!(get(&pool, &key(number)).unwrap(), content(newest), "{number}");
        }
        wait_for_moves(&pool);
    }
    assert_eq!(listed(&pool, 50).len(), 120);
    let held = held(&pool);
    assert!(held[0].is_disjoint(&held[1]));
    assert_eq!(held[1], moved);
}

#[test]
fn move_goes_on_if_all_disks_are_lost_meanwhile() {
    let disk = MemoryDisk::default();
    let pool = open(&disk, 0..1);
    pool.create_bucket(BUCKET).unwrap();
    fill(&pool, 0..120);
    pool.close().unwrap();
    open_slowly(&disk, 0..2).close().unwrap();
    save(&disk, 0..2);
    restore(&disk, &found(&disk, &[0, 1]), 2).unwrap();
    let pool = open(&disk, NEW..NEW + 2);
    check(&pool, 0..120);
    wait_for_moves(&pool);
    check(&pool, 0..120);
    let held = held(&pool);
    assert!(held[0].is_disjoint(&held[1]));
}

#[test]
fn buckets_are_those_of_the_newest_copy() {
    for newest in [0, 1] {
        let disk = MemoryDisk::default();
        let pool = open(&disk, 0..2);
        for bucket in [BUCKET, "gone"] {
            pool.create_bucket(bucket).unwrap();
        }
        fill(&pool, 0..40);
        let none = Attributes::new();
        for number in 0..20 {
            pool.put("gone", &key(number), b"gone", &none, &Precondition::None).unwrap();
        }
        pool.close().unwrap();
        save(&disk, [1 - newest]);
        let pool = open(&disk, 0..2);
        for number in 0..20 {
            pool.delete("gone", &key(number)).unwrap();
        }
        pool.delete_bucket("gone").unwrap();
        pool.create_bucket("later").unwrap();
        pool.set_bucket_setting(BUCKET, "owner", Some("bob")).unwrap();
        pool.close().unwrap();
        save(&disk, [newest]);
        DirCopies::new(&disk).set_time(newest, 100);
        restore(&disk, &found(&disk, &[0, 1]), 2).unwrap();
        let pool = open(&disk, NEW..NEW + 2);
        let buckets: Vec<_> = pool.buckets().unwrap().into_iter().map(|it| it.name).collect();
        assert_eq!(buckets, [BUCKET, "later"]);
        for store in pool.stores() {
            assert_eq!(store.bucket_settings(BUCKET).unwrap().get("owner"), Some("bob"));
        }
        check(&pool, 0..40);
        pool.create_bucket("new").unwrap();
        pool.close().unwrap();
    }
}

#[test]
fn pool_is_restored_into_directories_that_do_not_exist() {
    let disk = MemoryDisk::default();
    let pool = open(&disk, 0..2);
    pool.create_bucket(BUCKET).unwrap();
    fill(&pool, 0..20);
    pool.close().unwrap();
    save(&disk, 0..2);
    let place = tempfile::tempdir().unwrap();
    let dirs: Vec<PathBuf> = ["a/b", "c"].map(|name| place.path().join(name)).into();
    let copies = DirCopies::new(&disk);
    let restored = restore_pool(&dirs, &found(&disk, &[0, 1]), &copies, &small()).unwrap();
    assert_eq!(restored.members[1].dir, dirs[1]);
    let (pool, _) = Pool::open(&dirs, &small()).unwrap();
    check(&pool, 0..20);
    pool.close().unwrap();
}
