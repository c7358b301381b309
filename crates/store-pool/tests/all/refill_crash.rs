//! Crashes at every step of a refill.

use std::cell::Cell;

use haul_disk_sim::{Crash, Crashes, Device, MemoryDisk, crash_everywhere, print_count};
use haul_file_store::{Attributes, Error, Precondition};
use haul_testing::depth;

use crate::refill::{DirCopies, NEW, refill};
use crate::{BUCKET, check, content, dirs, fill, get, key, open, refusal, small};

const OBJECTS: u64 = 24;

/// The number of crash states for each unit of depth.
const STATES: u64 = 300;

/// The member is lost, and its copy is complete.
struct Lost;

/// Creates a pool of three members, loses one, and refills it.
fn run(lost: usize, disk: &MemoryDisk) {
    let pool = open(disk, 0..3);
    for bucket in [BUCKET, "gone"] {
        pool.create_bucket(bucket).unwrap();
    }
    fill(&pool, 0..OBJECTS);
    for number in 0..9 {
        let none = Attributes::new();
        pool.put("gone", &key(number), b"gone", &none, &Precondition::None).unwrap();
    }
    pool.close().unwrap();
    DirCopies::new(disk).save(u16::try_from(lost).unwrap());
    let pool = open(disk, 0..3);
    for number in 0..9 {
        pool.delete("gone", &key(number)).unwrap();
    }
    pool.delete_bucket("gone").unwrap();
    pool.close().unwrap();
    disk.note(Lost);
    refill(disk, others(lost)).unwrap().close().unwrap();
}

fn others(lost: usize) -> impl Iterator<Item = usize> + Clone {
    (0..3).filter(move |member| *member != lost)
}

fn recover(lost: usize, crash: &Crash, checked: &Cell<u64>) {
    if crash.notes::<Lost>().count() == 0 {
        return;
    }
    checked.set(checked.get() + 1);
    if checked.get().is_multiple_of(3) {
        // The pool opens without a refill, too: its keys are there, or not available.
        let dirs = dirs(&crash.disk, others(lost).chain([NEW]));
        let pool = haul_store_pool::Pool::open_on(&dirs, &Default::default(), &small()).unwrap().0;
        for number in 0..OBJECTS {
            match get(&pool, &key(number)) {
                Ok(bytes) => assert_eq!(bytes, content(number)),
                Err(error) => assert!(matches!(error, Error::MemberMissing { .. }), "{error}"),
            }
        }
        assert!(pool.bucket("gone").is_err());
        pool.close().unwrap();
    }
    let pool = refill(&crash.disk, others(lost)).unwrap();
    check(&pool, 0..OBJECTS);
    assert!(pool.bucket("gone").is_err());
    for number in 0..OBJECTS {
        let has = pool.stores().filter(|store| store.stat(BUCKET, &key(number)).is_ok());
        assert_eq!(has.count(), 1, "{}", key(number));
    }
    let big = (0..OBJECTS).filter(|number| number.is_multiple_of(8)).count() as u64;
    assert_eq!(pool.stats().big_files, big);
    pool.close().unwrap();
    let pool = open(&crash.disk, others(lost).chain([NEW]));
    check(&pool, 0..OBJECTS);
    // Buckets can be changed again.
    drop(pool.create_bucket("other"));
    pool.delete_bucket("other").unwrap();
    pool.close().unwrap();
    let back = refusal(&crash.disk, 0..3);
    assert!(back.contains("is no longer a member of the pool"), "{back}");
}

#[test]
fn crash_while_a_member_is_refilled_loses_and_doubles_no_key() {
    let mut crashes = Crashes {
        steps: 60,
        worst: Device::StaleBlocks,
        all_up_to: 1,
        draws: 1,
        again_one_in: 40,
        again_steps: 6,
        ..Crashes::default()
    };
    let (checked, first) = (Cell::new(0), crashes.seed);
    while checked.get() < STATES * depth() {
        // The first member decides about buckets, unless it was restored.
        let lost = usize::from(!crashes.seed.is_multiple_of(2));
        crash_everywhere(
            &crashes,
            |disk| run(lost, disk),
            |(), crash| {
                recover(lost, crash, &checked);
            },
        );
        crashes.seed = crashes.seed.wrapping_add(1);
    }
    print_count(&format!("{} crash states of a refill", checked.get()), first);
}
