//! Crashes at every step of the restore of a whole pool.

use std::cell::Cell;

use haul_disk_sim::{Crash, Crashes, Device, MemoryDisk, crash_everywhere, print_count};
use haul_store_pool::{OpenWith, Pool};
use haul_testing::depth;

use crate::refill::DirCopies;
use crate::restore::{NEW, found, open, restore};
use crate::{BUCKET, check, dirs, fill, small};

const OBJECTS: u64 = 24;

/// The number of crash states for each unit of depth.
const STATES: u64 = 300;

/// All members are lost, and their copies are complete.
struct Lost;

/// The pool was restored.
struct Restored;

/// Creates a pool of three members, loses all, restores and opens it.
fn run(disk: &MemoryDisk) {
    let pool = open(disk, 0..3);
    pool.create_bucket(BUCKET).unwrap();
    fill(&pool, 0..OBJECTS);
    pool.close().unwrap();
    (0..3).for_each(|member| DirCopies::new(disk).save(member));
    disk.note(Lost);
    restore(disk, &found(disk, &[0, 1, 2]), 3).unwrap();
    disk.note(Restored);
    open(disk, NEW..NEW + 3).close().unwrap();
}

fn recover(crash: &Crash, checked: &Cell<u64>) {
    if crash.notes::<Lost>().count() == 0 {
        return;
    }
    checked.set(checked.get() + 1);
    let is_restored = crash.notes::<Restored>().count() > 0;
    // The directories are no pool, or all of it.
    let opened = Pool::open_on(&dirs(&crash.disk, NEW..NEW + 3), &OpenWith::default(), &small());
    let is_pool = match opened {
        Ok((pool, _)) => {
            let is_pool = pool.stats().objects > 0;
            if is_pool {
                check(&pool, 0..OBJECTS);
            }
            pool.close().unwrap();
            is_pool
        }
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("restore was interrupted"), "{text}");
            false
        }
    };
    assert!(is_pool || !is_restored, "a restored pool is lost");
    if is_pool {
        return;
    }
    match restore(&crash.disk, &found(&crash.disk, &[0, 1, 2]), 3) {
        Ok(_) => {}
        // Nothing had begun, and opening the empty directories has created a pool in them.
        Err(error) => {
            assert!(error.to_string().contains("is not empty"), "{error}");
            return;
        }
    }
    let pool = open(&crash.disk, NEW..NEW + 3);
    check(&pool, 0..OBJECTS);
    for store in pool.stores() {
        assert!(store.bucket(BUCKET).unwrap().objects < OBJECTS);
    }
    drop(pool.create_bucket("other"));
    pool.delete_bucket("other").unwrap();
    pool.close().unwrap();
}

#[test]
fn crash_while_a_pool_is_restored_leaves_no_pool_or_all_of_it() {
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
        crash_everywhere(&crashes, run, |(), crash| recover(crash, &checked));
        crashes.seed = crashes.seed.wrapping_add(1);
    }
    print_count(&format!("{} crash states of a restore", checked.get()), first);
}
