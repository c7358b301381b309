//! Members that join and leave, while keys are read and written.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use haul_disk_sim::MemoryDisk;
use haul_testing::Random;

use crate::{
    BUCKET, check, content, dirs, fill, get, key, listed, open, open_at, put, small, spread,
    wait_for_moves,
};
use haul_store_pool::{OpenWith, Pool};

#[test]
fn store_of_its_own_grows_to_a_pool() {
    let disk = MemoryDisk::default();
    let own = open(&disk, [0]);
    own.create_bucket(BUCKET).unwrap();
    own.set_bucket_setting(BUCKET, "owner", Some("ann")).unwrap();
    fill(&own, 0..200);
    own.close().unwrap();
    let pool = open(&disk, 0..3);
    check(&pool, 0..200);
    wait_for_moves(&pool);
    check(&pool, 0..200);
    let spread = spread(&pool);
    assert!(spread.iter().all(|objects| (30..=110).contains(objects)), "{spread:?}");
    let owners: Vec<_> = pool
        .stores()
        .map(|store| store.bucket_settings(BUCKET).unwrap().get("owner").map(str::to_owned))
        .collect();
    assert_eq!(owners, [(); 3].map(|()| Some("ann".to_owned())));
    let progress = pool.move_progress().unwrap();
    assert_eq!((progress.failures, progress.keys), (0, spread[1] + spread[2]));
    pool.close().unwrap();
    check(&open(&disk, 0..3), 0..200);
}

#[test]
fn members_that_join_and_leave_during_moves_get_their_slots_afterwards() {
    let disk = MemoryDisk::default();
    let own = open(&disk, [0]);
    own.create_bucket(BUCKET).unwrap();
    fill(&own, 0..200);
    own.close().unwrap();
    drop(open_at(&disk, 0..2, 1));
    // One joins while keys move, and one leaves.
    let mut pool = open_at(&disk, 0..3, 1);
    assert_eq!(pool.members().len(), 3);
    let leaving = pool.members()[0].dir().to_owned();
    pool.remove_member(&leaving).unwrap();
    assert!(pool.move_progress().unwrap().slots_left > 2048);
    check(&pool, 0..200);
    pool.close().unwrap();
    let pool = open(&disk, 0..3);
    wait_for_moves(&pool);
    let spread = spread(&pool);
    assert!(spread[0] == 0 && spread[1..].iter().all(|objects| *objects > 50), "{spread:?}");
    check(&pool, 0..200);
    pool.close().unwrap();
    let pool = open(&disk, 0..3);
    assert_eq!(pool.members().len(), 2);
    check(&pool, 0..200);
}

#[test]
fn member_that_gets_keys_back_from_a_lost_one_leaves_nevertheless() {
    let disk = MemoryDisk::default();
    let mut pool = open_at(&disk, 0..3, 1);
    pool.create_bucket(BUCKET).unwrap();
    fill(&pool, 0..150);
    let [leaving, lost] = [0, 1].map(|position: usize| pool.members()[position].dir().to_owned());
    pool.remove_member(&leaving).unwrap();
    pool.close().unwrap();
    let with = OpenWith { lost: &[lost], ..OpenWith::default() };
    let pool = Pool::open_on(&dirs(&disk, [0, 2]), &with, &small()).unwrap().0;
    wait_for_moves(&pool);
    let left = listed(&pool, 1000).len() as u64;
    assert_eq!(spread(&pool), [0, left]);
    pool.close().unwrap();
    assert_eq!(open(&disk, [0, 2]).members().len(), 1);
}

#[test]
fn member_leaves_and_the_others_have_its_keys() {
    let disk = MemoryDisk::default();
    let mut pool = open(&disk, 0..3);
    pool.create_bucket(BUCKET).unwrap();
    fill(&pool, 0..150);
    let dir = pool.members()[0].dir().to_owned();
    pool.remove_member(&dir).unwrap();
    check(&pool, 0..150);
    wait_for_moves(&pool);
    check(&pool, 0..150);
    assert_eq!(spread(&pool)[0], 0);
    pool.close().unwrap();
    // The pool opens without the member, whether its directory is given or not.
    let pool = open(&disk, 0..3);
    assert_eq!(pool.members().len(), 2);
    check(&pool, 0..150);
    pool.close().unwrap();
    let (pool, report) = Pool::open_on(&dirs(&disk, 0..3), &OpenWith::default(), &small()).unwrap();
    assert_eq!((pool.members().len(), report.left), (2, vec![dir]));
    pool.close().unwrap();
    let mut pool = open(&disk, 1..3);
    check(&pool, 0..150);
    let dirs: Vec<_> = pool.members().iter().map(|member| member.dir().to_owned()).collect();
    pool.remove_member(&dirs[0]).unwrap();
    wait_for_moves(&pool);
    let last = pool.remove_member(&dirs[1]).unwrap_err().to_string();
    assert!(last.contains("is the last member that stays"), "{last}");
    check(&pool, 0..150);
}

#[test]
fn every_read_is_right_while_keys_move() {
    let disk = MemoryDisk::default();
    let own = open(&disk, [0]);
    own.create_bucket(BUCKET).unwrap();
    fill(&own, 0..400);
    own.close().unwrap();
    let pool = open(&disk, 0..3);
    let is_done = AtomicBool::new(false);
    let all: Vec<String> =
        BTreeMap::from_iter((0..400).map(|number| (key(number), ()))).into_keys().collect();
    thread::scope(|scope| {
        for reader in 0..3 {
            let (pool, is_done) = (&pool, &is_done);
            scope.spawn(move || {
                let mut random = Random(reader);
                while !is_done.load(Relaxed) {
                    let number = random.below(400);
                    assert_eq!(get(pool, &key(number)).unwrap(), content(number));
                }
            });
        }
        let (pool, is_done, all) = (&pool, &is_done, &all);
        scope.spawn(move || {
            while !is_done.load(Relaxed) {
                assert_eq!(listed(pool, 37), *all);
            }
        });
        scope.spawn(move || {
            let mut random = Random(9);
            while !is_done.load(Relaxed) {
                let number = random.below(400);
                put(pool, &key(number), &content(number));
            }
        });
        wait_for_moves(pool);
        is_done.store(true, Relaxed);
    });
    check(&pool, 0..400);
    pool.close().unwrap();
    check(&open(&disk, 0..3), 0..400);
}

#[test]
fn keys_change_while_they_move() {
    let disk = MemoryDisk::default();
    let own = open(&disk, [0]);
    own.create_bucket(BUCKET).unwrap();
    fill(&own, 0..300);
    own.close().unwrap();
    let pool = open(&disk, [0, 1]);
    // Each thread has keys of its own, so that it knows their states.
    thread::scope(|scope| {
        for thread in 0..6 {
            let pool = &pool;
            scope.spawn(move || {
                let mut random = Random(thread);
                let mut deleted = [false; 50];
                for _ in 0..200 {
                    let number = random.below(50);
                    let key = key(thread * 50 + number);
                    let is_deleted = &mut deleted[usize::try_from(number).unwrap()];
                    match random.below(3) {
                        0 => {
                            let existed = pool.delete(BUCKET, &key).unwrap();
                            assert_eq!(existed, !*is_deleted, "{key}");
                            *is_deleted = true;
                        }
                        1 => {
                            put(pool, &key, &content(thread * 50 + number));
                            *is_deleted = false;
                        }
                        _ => assert_eq!(get(pool, &key).is_err(), *is_deleted, "{key}"),
                    }
                }
                for number in 0..50 {
                    put(pool, &key(thread * 50 + number), &content(thread * 50 + number));
                }
            });
        }
    });
    wait_for_moves(&pool);
    check(&pool, 0..300);
}
