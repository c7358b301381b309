//! Versions in damaged places.

use haul_disk::Disk;
use haul_disk_sim::{MemoryDisk, Survival};
use haul_file_store::{Deletion, Error, ListVersionsRequest, Result, Store, VersionId, Versioning};

use crate::crash::open_on;
use crate::{BUCKET, get, put, try_get, try_put};

const VOLUME: &str = "volumes/0000000001.segment";
const INDEX: &str = "volumes/0000000001.index";

fn is_damaged<T>(outcome: Result<T>) -> bool {
    matches!(outcome, Err(Error::Damaged { .. }))
}

fn delete(store: &Store, key: &str, id: VersionId) -> bool {
    store.delete_object(BUCKET, key, Some(id)).unwrap().existed
}

/// Returns a store whose bucket has versions: of `key` the contents "oldest", "older" and
/// "current", and of `other` "untouched". In the last needle with these bytes, one is damaged.
fn with_damage(bytes: &[u8]) -> (MemoryDisk, Store, Vec<VersionId>) {
    let disk = MemoryDisk::default();
    let (store, _) = open_on(&disk);
    store.create_bucket(BUCKET).unwrap();
    store.set_versioning(BUCKET, Versioning::Enabled).unwrap();
    let contents: [&[u8]; 3] = [b"oldest", b"older", b"current"];
    let ids = contents.map(|bytes| put(&store, "key", bytes).version_id).to_vec();
    put(&store, "other", b"untouched");
    store.close().unwrap();
    let mut medium = disk.medium().cut(Survival::Everything);
    let mut volume = medium.file(VOLUME);
    let at = volume.windows(bytes.len()).rposition(|window| window == bytes).unwrap();
    volume[at] ^= 1;
    drop(volume);
    let disk = MemoryDisk::on(&medium);
    let (store, _) = open_on(&disk);
    (disk, store, ids)
}

#[test]
fn damaged_version_affects_no_other() {
    let (_disk, store, ids) = with_damage(b"older");
    assert!(is_damaged(store.get_version(BUCKET, "key", ids[1])));
    assert_eq!(get(&store, "key"), b"current");
    assert!(store.get_version(BUCKET, "key", ids[0]).is_ok());
    let listed =
        store.list_versions(BUCKET, &ListVersionsRequest { limit: 9, ..Default::default() });
    assert_eq!(listed.unwrap().entries.len(), 4);
    let damage = store.verify(&mut |_, _| {}).unwrap().damage;
    let named = format!("key (version {})", ids[1]);
    let is_named = |it: &haul_file_store::Damage| {
        it.bucket.as_deref() == Some(BUCKET) && it.key.as_deref() == Some(&*named)
    };
    assert!(damage.iter().any(is_named), "{damage:?}");
    // It cannot become current, and stays until it is deleted itself.
    assert!(is_damaged(store.delete_object(BUCKET, "key", Some(ids[2]))));
    assert_eq!(get(&store, "key"), b"current");
    assert!(delete(&store, "key", ids[1]) && delete(&store, "key", ids[2]));
    assert_eq!(get(&store, "key"), b"oldest");
}

#[test]
fn damaged_version_prevents_no_deletions_that_do_not_make_it_current() {
    let delete = |store: &Store, ids: &[VersionId]| {
        let deletion = |id: &VersionId| Deletion { version: Some(*id), ..Deletion::of("key") };
        let deletions: Vec<_> = ids.iter().map(deletion).collect();
        store.delete_objects(BUCKET, &deletions)
    };
    let (_disk, store, ids) = with_damage(b"oldest");
    let mut outcomes = delete(&store, &[ids[2], ids[1]]);
    assert!(is_damaged(outcomes.remove(1)) && outcomes.remove(0).unwrap().existed);
    assert_eq!(get(&store, "key"), b"older");
    let (_disk, store, ids) = with_damage(b"older");
    let outcomes = delete(&store, &[ids[2], ids[1]]);
    assert!(outcomes.into_iter().all(|deleted| deleted.unwrap().existed));
    assert_eq!(get(&store, "key"), b"oldest");
}

#[test]
fn damaged_current_object_is_neither_replaced_nor_deleted_without_its_id() {
    let (_disk, store, ids) = with_damage(b"current");
    assert!(is_damaged(try_get(&store, "key")));
    assert!(is_damaged(try_put(&store, "key", b"next")));
    assert!(is_damaged(store.delete(BUCKET, "key")));
    try_put(&store, "other", b"next").unwrap();
    assert!(delete(&store, "key", ids[2]));
    assert_eq!(get(&store, "key"), b"older");
    try_put(&store, "key", b"next").unwrap();
}

#[test]
fn hidden_places_make_versions_uncertain_until_the_loss_is_accepted() {
    let (disk, store, ids) = with_damage(b"current");
    store.close().unwrap();
    // It exists unless a checkpoint covers the volume.
    assert!(disk.remove(INDEX).is_ok());
    for name in disk.list("index").unwrap() {
        disk.remove(&format!("index/{name}")).unwrap();
    }
    let mut medium = disk.medium().cut(Survival::Everything);
    let mut volume = medium.file(VOLUME);
    // Also the head of the needle, which has the checksum 34 bytes before its names.
    let at = volume.windows(9).rposition(|window| window == b"bucketkey").unwrap();
    volume[at - 34] ^= 1;
    drop(volume);
    let disk = MemoryDisk::on(&medium);
    let (store, recovered) = open_on(&disk);
    assert_eq!(recovered.hidden.len(), 1, "{recovered:?}");
    assert!(is_damaged(try_get(&store, "key")) && is_damaged(try_put(&store, "key", b"next")));
    assert!(is_damaged(store.delete_object(BUCKET, "key", None)));
    assert!(is_damaged(store.delete_object(BUCKET, "key", Some(ids[0]))));
    assert!(is_damaged(store.list_versions(BUCKET, &ListVersionsRequest::default())));
    assert_eq!(get(&store, "other"), b"untouched");
    try_put(&store, "other", b"next").unwrap();
    store.accept_damage().unwrap();
    assert_eq!(get(&store, "key"), b"older");
    assert!(store.get_version(BUCKET, "key", ids[0]).is_ok());
    try_put(&store, "key", b"next").unwrap();
}
