//! Versions on a full disk.

use haul_disk_sim::MemoryDisk;
use haul_file_store::{Deletion, Error, Store, VersionId, Versioning};

use super::contents::list_all;
use crate::crash::open_on;
use crate::{BUCKET, content, random_bytes, try_put};

const VOLUME: u64 = 4 << 20;
const KEYS: u64 = 20;

fn bytes(number: u64) -> Vec<u8> {
    random_bytes(number, 50_000)
}

/// Stores versions of a few keys until the disk is full. Returns their IDs.
fn fill(store: &Store) -> Vec<VersionId> {
    let mut ids = Vec::new();
    for number in 0.. {
        match try_put(store, &(number % KEYS).to_string(), &bytes(number)) {
            Ok(stored) => ids.push(stored.version_id),
            Err(Error::Full { .. }) => return ids,
            Err(other) => panic!("{other:?}"),
        }
    }
    unreachable!("the disk has a limit")
}

#[test]
fn full_disk_loses_no_version_and_old_ones_can_be_deleted() {
    let disk = MemoryDisk::default();
    let (store, _) = open_on(&disk);
    store.create_bucket(BUCKET).unwrap();
    store.set_versioning(BUCKET, Versioning::Enabled).unwrap();
    disk.limit(Some(5 * VOLUME + (100 << 10)));
    let ids = fill(&store);
    assert!(ids.len() as u64 > 2 * KEYS, "{}", ids.len());
    let keys: Vec<String> = (0..KEYS).map(|key| key.to_string()).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    for deleted in store.delete_many(BUCKET, &keys) {
        assert!(matches!(deleted, Ok(_) | Err(Error::Full { .. })), "{deleted:?}");
    }
    let check = |store: &Store, from: usize| {
        for (number, id) in (0..).zip(&ids).skip(from) {
            let key = (number % KEYS).to_string();
            let object = store.get_version(BUCKET, &key, *id).unwrap();
            assert!(content(&object).unwrap() == bytes(number), "{number}");
        }
    };
    check(&store, 0);
    let old = ids.len() - usize::try_from(KEYS).unwrap();
    let deletions: Vec<_> = ids
        .iter()
        .zip(keys.iter().cycle())
        .map(|(id, key)| Deletion { version: Some(*id), ..Deletion::of(key) })
        .collect();
    for deleted in store.delete_objects(BUCKET, &deletions[..old]) {
        assert!(deleted.unwrap().existed);
    }
    store.compact().unwrap();
    check(&store, old);
    try_put(&store, "key", &bytes(0)).unwrap();
    store.close().unwrap();
    let (store, recovered) = open_on(&disk);
    assert_eq!(recovered.damage, []);
    check(&store, old);
    let listed = list_all(&store, 1000).into_iter().filter(|version| !version.is_delete_marker);
    assert_eq!(listed.count() as u64, KEYS + 1);
}
