//! Requests that name a version several times.

use haul_disk::Op;
use haul_disk_sim::MemoryDisk;
use haul_file_store::{Deleted, Deletion, Store, VersionId, Versioning};

use crate::crash::open_on;
use crate::{BUCKET, new_store, put};

fn delete(store: &Store, versions: &[Option<VersionId>]) -> Vec<Deleted> {
    let deletion =
        |version: &Option<VersionId>| Deletion { version: *version, ..Deletion::of("key") };
    let deletions: Vec<_> = versions.iter().map(deletion).collect();
    store.delete_objects(BUCKET, &deletions).into_iter().map(Result::unwrap).collect()
}

#[test]
fn version_that_a_request_names_several_times_is_searched_once() {
    let disk = MemoryDisk::default();
    let store = open_on(&disk).0;
    store.create_bucket(BUCKET).unwrap();
    store.set_versioning(BUCKET, Versioning::Enabled).unwrap();
    (0..300).for_each(|_| drop(put(&store, "key", b"bytes")));
    store.close().unwrap();
    let store = open_on(&disk).0;
    let null = Some(VersionId::Null);
    let reads = |versions: &[Option<VersionId>]| {
        let before = disk.calls(Op::Read);
        assert!(delete(&store, versions).iter().all(|deleted| *deleted == Deleted::default()));
        disk.calls(Op::Read) - before
    };
    let once = reads(&[null]);
    assert!(once > 0, "the versions are in memory");
    assert_eq!(reads(&[null; 100]), once);
}

#[test]
fn repeated_deletion_of_a_version_finds_nothing_unless_a_marker_took_its_id() {
    let (_dir, store) = new_store();
    store.set_versioning(BUCKET, Versioning::Suspended).unwrap();
    put(&store, "key", b"bytes");
    let null = Some(VersionId::Null);
    let outcomes = delete(&store, &[null, null, None, null, null]);
    let shown = outcomes.iter().map(|deleted| (deleted.existed, deleted.is_delete_marker));
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [(true, false), (false, false), (false, true), (true, true), (false, false)]
    );
    assert_eq!((store.stats().objects, store.stats().versions), (0, 0));
}
