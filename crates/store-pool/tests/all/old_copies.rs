//! A member whose directory was replaced by an older copy.

use std::sync::Arc;

use haul_disk::Disk;
use haul_disk_sim::MemoryDisk;
use haul_file_store::Error;
use haul_store_pool::{OpenWith, Pool};

use crate::{BUCKET, check, fill, get, key, small};

/// Three disks with a pool, and the state of the second one before the last objects were stored.
fn pool_and_old_copy() -> ([MemoryDisk; 3], MemoryDisk) {
    let disks = [(); 3].map(|()| MemoryDisk::default());
    let pool = open(&disks).unwrap();
    pool.create_bucket(BUCKET).unwrap();
    fill(&pool, 0..30);
    pool.close().unwrap();
    let old = MemoryDisk::on(&disks[1].medium());
    let pool = open(&disks).unwrap();
    fill(&pool, 30..60);
    pool.close().unwrap();
    (disks, old)
}

fn open(disks: &[MemoryDisk]) -> haul_file_store::Result<Pool> {
    let disks: Vec<Arc<dyn Disk>> = disks.iter().map(|disk| Arc::new(disk.clone()) as _).collect();
    Pool::open_on(&disks, &OpenWith::default(), &small()).map(|(pool, _)| pool)
}

#[test]
fn older_copy_of_a_member_is_missing_and_the_newest_one_is_used() {
    let (disks, old) = pool_and_old_copy();
    let pool = open(&[disks[0].clone(), old, disks[2].clone()]).unwrap();
    let why = pool.members()[1].why_missing().unwrap();
    assert!(why.contains("it is an older copy"), "{why}");
    let missing = (0..60)
        .filter(|number| matches!(get(&pool, &key(*number)), Err(Error::MemberMissing { .. })));
    let missing = missing.count() as u64;
    assert!(missing > 5);
    assert_eq!(pool.quota(BUCKET).unwrap().usage.objects, 60 - missing, "it counts no more");
    drop(pool);
    check(&open(&disks).unwrap(), 0..60);
}

#[test]
fn two_copies_of_a_member_are_refused() {
    let (disks, old) = pool_and_old_copy();
    let all = [disks[0].clone(), disks[1].clone(), disks[2].clone(), old];
    let error = open(&all).unwrap_err().to_string();
    assert!(error.contains("are copies of the same member"), "{error}");
}

#[test]
fn kill_after_a_record_is_no_older_copy() {
    let disks = [(); 2].map(|()| MemoryDisk::default());
    for round in 0..5 {
        let pool = open(&disks).unwrap();
        assert!(pool.members().iter().all(|member| member.why_missing().is_none()));
        drop(pool.create_bucket(BUCKET));
        fill(&pool, round * 10..(round + 1) * 10);
        if round % 2 == 0 {
            // What a killed process leaves is opened while the old one still exists.
            let killed = disks.each_ref().map(|disk| MemoryDisk::on(&disk.medium()));
            check(&open(&killed).unwrap(), 0..(round + 1) * 10);
        }
        pool.close().unwrap();
    }
    check(&open(&disks).unwrap(), 0..50);
}
