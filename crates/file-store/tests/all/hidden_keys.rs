//! Keys in doubt while damage hides needles, how they become certain, and accepted damage.

use std::sync::Arc;
use std::time::Duration;

use haul_disk::{Disk, File, Open, read_full};
use haul_disk_sim::{Medium, MemoryDisk, Survival};
use haul_file_store::{
    Attributes, Error, ListRequest, Options, Precondition, RecoveryReport, Result, Store,
};
use haul_testing::eventually;

use crate::crash::open_on;
use crate::victim::settled;
use crate::{BIG, BUCKET, put, random_bytes, small, try_get, try_put, without_checkpoints};

const VOLUME: &str = "volumes/0000000001.segment";
const INDEX: &str = "volumes/0000000001.index";

/// The length of the head of a short object before its names.
const HEAD_BYTES: usize = 34;

/// Returns the medium of a closed store in which `key` was stored twice and then `after` once. The
/// second needle of `key` is damaged and the index is lost, so the content of this place is
/// unknown.
fn hidden() -> Medium {
    let disk = MemoryDisk::default();
    let (store, _) = open_on(&disk);
    store.create_bucket(BUCKET).unwrap();
    put(&store, "key", b"old");
    put(&store, "key", b"new");
    put(&store, "after", b"certain");
    store.close().unwrap();
    disk.remove(INDEX).unwrap();
    let mut medium = disk.medium().cut(Survival::Everything);
    let mut volume = medium.file(VOLUME);
    let at = volume.windows(9).rposition(|window| window == b"bucketkey").unwrap();
    volume[at - HEAD_BYTES] ^= 1;
    volume[at - HEAD_BYTES - 32] ^= 1;
    drop(volume);
    medium
}

fn opened() -> (MemoryDisk, Store, RecoveryReport) {
    let disk = MemoryDisk::on(&hidden());
    let (store, recovered) = open_on(&disk);
    (disk, store, recovered)
}

fn is_damaged<T>(outcome: Result<T>) -> bool {
    matches!(outcome, Err(Error::Damaged { .. }))
}

fn list_all(store: &Store) -> Result<usize> {
    let request = ListRequest { limit: 100, ..ListRequest::default() };
    store.list(BUCKET, &request).map(|page| page.entries.len())
}

#[test]
fn key_in_doubt_is_an_error_and_newer_key_is_not() {
    let (_disk, store, recovered) = opened();
    assert_eq!((recovered.hidden.len(), store.stats().hidden_ranges), (1, 1));
    assert!(is_damaged(try_get(&store, "key")) && is_damaged(try_get(&store, "absent")));
    assert!(is_damaged(store.stat(BUCKET, "key")) && is_damaged(store.head(BUCKET, "key")));
    assert!(is_damaged(list_all(&store)) && is_damaged(store.buckets()));
    assert!(is_damaged(store.bucket(BUCKET)) && is_damaged(store.delete_bucket(BUCKET)));
    let none = Attributes::new();
    let copied = store.copy((BUCKET, "key"), (BUCKET, "copy"), None, &Precondition::None);
    assert!(is_damaged(copied));
    for precondition in [Precondition::Absent, Precondition::Present] {
        assert!(is_damaged(store.put(BUCKET, "key", b"", &none, &precondition)));
    }
    assert!(is_damaged(store.put("no-bucket", "key", b"", &none, &Precondition::None)));
    assert_eq!(try_get(&store, "after").unwrap(), b"certain");
    let verified = store.verify(&mut |_, _| {}).unwrap();
    assert!(verified.damage.contains(&recovered.hidden[0]));
    assert!(verified.damage.iter().any(|damage| damage.key.as_deref() == Some("key")));
}

#[test]
fn stored_or_deleted_key_is_certain_also_after_reopening() {
    let (disk, store, _) = opened();
    try_put(&store, "key", b"newest").unwrap();
    assert!(store.delete(BUCKET, "absent").unwrap(), "the key may have existed");
    store.close().unwrap();
    for _ in 0..2 {
        let store = open_on(&disk).0;
        assert_eq!(try_get(&store, "key").unwrap(), b"newest");
        assert!(matches!(try_get(&store, "absent"), Err(Error::NoSuchKey { .. })));
        assert!(is_damaged(try_get(&store, "other")) && is_damaged(list_all(&store)));
        store.close().unwrap();
    }
}

#[test]
fn upload_started_later_is_certain() {
    let (_disk, store, _) = opened();
    let upload = store.start_upload(BUCKET, "upload", &Attributes::new()).unwrap();
    let part = crate::put_part(&store, "upload", &upload, 1, b"part");
    assert_eq!(store.parts(BUCKET, "upload", &upload).unwrap().len(), 1);
    let (none, always) = (Attributes::new(), Precondition::None);
    store.complete_upload(BUCKET, "upload", &upload, &[part], &none, &always).unwrap();
    assert_eq!(try_get(&store, "upload").unwrap(), b"part");
    assert!(
        is_damaged(store.parts(BUCKET, "upload", &upload)),
        "an upload with this ID may be hidden"
    );
}

#[test]
fn accepted_damage_hides_nothing_and_is_still_reported() {
    let (disk, store, recovered) = opened();
    assert_eq!(store.accept_damage().unwrap(), recovered.hidden);
    let mut next = Some(store);
    for _ in 0..2 {
        let store = next.take().unwrap_or_else(|| open_on(&disk).0);
        assert_eq!(try_get(&store, "key").unwrap(), b"old");
        assert!(matches!(try_get(&store, "absent"), Err(Error::NoSuchKey { .. })));
        assert_eq!(list_all(&store).unwrap(), 2);
        assert_eq!(store.stats().hidden_ranges, 0);
        let damage = store.verify(&mut |_, _| {}).unwrap().damage;
        assert!(damage.iter().any(|damage| damage.what.contains("accepted")), "{damage:?}");
        store.close().unwrap();
    }
}

fn read_all(file: &dyn File) -> haul_disk::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(file.bytes()?).unwrap()];
    read_full(file, &mut bytes, 0)?;
    Ok(bytes)
}

/// A closed store that was idle before it was closed, so that its last volume ends with a
/// watermark. It has the objects "first" and "last", each with these bytes.
fn idle(bytes: &[u8], options: Options) -> MemoryDisk {
    let disk = MemoryDisk::default();
    let options = Options { idle_watermark_ms: 1, ..options };
    let (store, _) = Store::open_on(Arc::new(disk.clone()), options).unwrap();
    store.create_bucket(BUCKET).unwrap();
    put(&store, "first", bytes);
    put(&store, "last", bytes);
    let volume = || settled(&disk).file(VOLUME).to_vec();
    let start = volume().windows(bytes.len()).rposition(|window| window == bytes).unwrap();
    let end = (start + bytes.len()).next_multiple_of(8);
    eventually("the watermark is written", || volume()[end..end + 32] != [0; 32]);
    store.close().unwrap();
    disk
}

#[test]
fn cut_volume_of_an_idle_store_hides_nothing_however_often_it_is_opened() {
    let bytes = random_bytes(6, 5000);
    for (options, puts) in [(without_checkpoints(), false), (without_checkpoints(), true)] {
        let disk = idle(&bytes, options.clone());
        let volume = disk.open(VOLUME, Open::default()).unwrap();
        let content = settled(&disk).file(VOLUME).to_vec();
        let last = content.windows(bytes.len()).rposition(|window| window == bytes).unwrap();
        volume.resize(last as u64 + 1000).unwrap();
        for opening in 1..=4 {
            let (store, recovered) =
                Store::open_on(Arc::new(disk.clone()), options.clone()).unwrap();
            assert_eq!(recovered.hidden, [], "opening {opening}");
            assert_eq!(try_get(&store, "first").unwrap(), bytes);
            assert!(is_damaged(try_get(&store, "last")), "opening {opening}");
            assert!(matches!(try_get(&store, "absent"), Err(Error::NoSuchKey { .. })));
            if puts {
                put(&store, &format!("put {opening}"), b"bytes");
            }
            store.close().unwrap();
        }
    }
}

#[test]
fn cut_volume_of_a_killed_store_hides_what_may_have_been_acknowledged() {
    let disk = MemoryDisk::default();
    let options = Options { index_write_every: Duration::ZERO, ..without_checkpoints() };
    let (store, _) = Store::open_on(Arc::new(disk.clone()), options).unwrap();
    store.create_bucket(BUCKET).unwrap();
    let bytes = random_bytes(7, 5000);
    put(&store, "first", &bytes);
    put(&store, "indexed", &bytes);
    eventually("the index is written", || {
        let index = disk.open(INDEX, Open::default()).and_then(|file| read_all(&*file));
        index.is_ok_and(|index| index.windows(7).any(|window| window == b"indexed"))
    });
    let killed = MemoryDisk::on(&settled(&disk));
    drop(store);
    let content = settled(&killed).file(VOLUME).to_vec();
    let indexed = content.windows(bytes.len()).rposition(|window| window == bytes).unwrap();
    killed.open(VOLUME, Open::default()).unwrap().resize(indexed as u64 + 1000).unwrap();
    for opening in 1..=3 {
        let (store, recovered) = open_on(&killed);
        assert_eq!(recovered.hidden.len(), 1, "opening {opening}");
        assert!(is_damaged(try_get(&store, "indexed")), "opening {opening}");
        assert!(is_damaged(try_get(&store, "absent")), "a later object is lost: {opening}");
        store.close().unwrap();
    }
}

#[test]
fn missing_manifest_is_damage_until_it_is_accepted() {
    let disk = MemoryDisk::default();
    let (store, _) = open_on(&disk);
    store.create_bucket(BUCKET).unwrap();
    put(&store, "key", b"bytes");
    store.close().unwrap();
    for name in ["MANIFEST", "MANIFEST.copy"] {
        disk.remove(name).unwrap();
    }
    for _ in 0..2 {
        let (store, recovered) = open_on(&disk);
        assert!(recovered.damage[0].what.contains("the manifest was lost"));
        assert_eq!(try_get(&store, "key").unwrap(), b"bytes");
        store.close().unwrap();
    }
    let store = open_on(&disk).0;
    store.accept_damage().unwrap();
    store.close().unwrap();
    assert_eq!(open_on(&disk).1.damage, []);
}

#[test]
fn scrub_finds_unread_damage() {
    let disk = MemoryDisk::default();
    let options = Options { scrub_bytes_per_second: 1 << 30, ..small() };
    let (store, _) = open_on(&disk);
    store.create_bucket(BUCKET).unwrap();
    put(&store, "small", &random_bytes(1, 5000));
    put(&store, "big", &random_bytes(2, 3 * BIG));
    store.close().unwrap();
    let file = format!("objects/{}", disk.list("objects").unwrap()[0]);
    for (name, offset, key) in [(VOLUME, 8000, "small"), (file.as_str(), 100, "big")] {
        let disk = MemoryDisk::on(&disk.medium());
        let (store, recovered) = Store::open_on(Arc::new(disk.clone()), options.clone()).unwrap();
        assert_eq!(recovered.damage, []);
        eventually("the volumes are scrubbed", || store.stats().scrubs > 0);
        assert!(store.stats().scrubbed_bytes > 3 * BIG as u64);
        assert_eq!(store.damage(), []);
        store.close().unwrap();
        // Opening reads the newest volume; the scrub reads it again.
        let (store, _) = Store::open_on(Arc::new(disk.clone()), options.clone()).unwrap();
        disk.rot(name, offset, 0);
        eventually("the volumes are scrubbed", || store.stats().scrubs > 0);
        if store.damage().is_empty() {
            // The scrub had passed the place before; the next one finds it.
            store.close().unwrap();
            let (store, _) = Store::open_on(Arc::new(disk.clone()), options.clone()).unwrap();
            eventually("the volumes are scrubbed", || store.stats().scrubs > 0);
            assert_eq!(store.damage()[0].key.as_deref(), Some(key));
            continue;
        }
        assert_eq!(store.damage()[0].key.as_deref(), Some(key));
    }
}
