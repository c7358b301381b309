//! Quotas limit the usage in all members together.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use haul_disk_sim::MemoryDisk;
use haul_file_store::{Attributes, Error, NewBucket, OWNER_SETTING, Precondition, Quota};

use crate::{BUCKET, open};

#[test]
fn concurrent_writers_reach_the_quota_of_a_bucket_exactly() {
    let disk = MemoryDisk::default();
    let pool = open(&disk, 0..3);
    pool.create_bucket(BUCKET).unwrap();
    pool.set_quota(BUCKET, Quota { bytes: None, objects: Some(100) }).unwrap();
    let stored = AtomicU64::new(0);
    thread::scope(|scope| {
        for thread in 0..8 {
            let (pool, stored) = (&pool, &stored);
            scope.spawn(move || {
                for number in 0..40 {
                    let (key, none) = (format!("{thread}/{number}"), Attributes::new());
                    match pool.put(BUCKET, &key, b"x", &none, &Precondition::Absent) {
                        Ok(_) => drop(stored.fetch_add(1, Relaxed)),
                        Err(error) => assert!(matches!(error, Error::QuotaExceeded(_)), "{error}"),
                    }
                }
            });
        }
    });
    assert_eq!(stored.into_inner(), 100);
    let quota = pool.quota(BUCKET).unwrap();
    assert_eq!((quota.usage.objects, quota.usage.bytes), (100, 100));
    pool.close().unwrap();
    let pool = open(&disk, 0..3);
    assert_eq!(pool.quota(BUCKET).unwrap(), quota);
    assert_eq!(pool.quotas().len(), 1);
    let none = Attributes::new();
    let refused = pool.put(BUCKET, "more", b"x", &none, &Precondition::None);
    assert!(matches!(refused, Err(Error::QuotaExceeded(_))), "{refused:?}");
}

#[test]
fn quota_of_an_owner_counts_all_buckets_in_all_members() {
    let pool = open(&MemoryDisk::default(), 0..3);
    for bucket in ["one", "other"] {
        let owned = Attributes::from_iter([(OWNER_SETTING, "ann")]);
        pool.create_bucket_with(bucket, &NewBucket::from(owned)).unwrap();
    }
    let quota = Quota { bytes: Some(1000), objects: None };
    pool.set_owner_quotas(&BTreeMap::from([("ann".to_owned(), quota)])).unwrap();
    let none = Attributes::new();
    let put =
        |bucket: &str, key: &str| pool.put(bucket, key, &[7; 100], &none, &Precondition::None);
    let stored = (0..20).filter(|number| {
        let bucket = if number % 2 == 0 { "one" } else { "other" };
        put(bucket, &number.to_string()).is_ok()
    });
    assert_eq!(stored.count(), 10);
    assert_eq!(pool.owner_quotas()[0].usage.bytes, 1000);
}
