//! Copies of a store that are made of its log, its files and its checkpoint.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use haul_append_log::{Lsn, segment_name};
use haul_disk::{Disk, Durability, File, Open, read_full, write_full};
use haul_disk_sim::MemoryDisk;
use haul_file_store::{
    Attributes, CheckpointFile, CheckpointFiles, Error, Etag, Options, Precondition,
    RecoveryReport, Store, Versioning,
};

use crate::versions::contents::list_all;
use crate::*;

/// Returns a store on a simulated disk, with one bucket.
fn store_on(disk: &MemoryDisk, options: Options) -> Store {
    let store = Store::open_on(Arc::new(disk.clone()), options).unwrap().0;
    store.create_bucket(BUCKET).unwrap();
    store
}

fn read_all(file: &dyn File) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(file.bytes().unwrap()).unwrap()];
    assert_eq!(read_full(file, &mut bytes, 0).unwrap(), bytes.len());
    bytes
}

fn write(to: &MemoryDisk, name: &str, bytes: &[u8]) {
    let file = to.create(name, Open::default()).unwrap();
    write_full(&*file, bytes, 0).unwrap();
    file.sync(Durability::Everything).unwrap();
}

/// Returns the payloads of the durable records.
fn records(store: &Store) -> Vec<Vec<u8>> {
    let mut reader = store.log().reader(Lsn::default());
    let mut found = Vec::new();
    while let Some((_, payload)) = reader.read_next().unwrap() {
        found.push(payload.to_vec());
    }
    found
}

/// Copies the files of big objects that the log refers to. Returns their number.
fn copy_big_files(store: &Store, to: &MemoryDisk) -> usize {
    let files = |payload: &Vec<u8>| Store::record_files(payload).unwrap();
    let names: BTreeSet<String> = records(store).iter().flat_map(files).collect();
    let existing = |name: &String| Some((name.clone(), store.open_file(name).unwrap()?));
    let files: Vec<_> = names.iter().filter_map(existing).collect();
    files.iter().for_each(|(name, file)| write(to, name, &read_all(&**file)));
    files.len()
}

fn copy_checkpoint(checkpoint: &CheckpointFiles, to: &MemoryDisk) {
    for CheckpointFile { name, bytes, file } in &checkpoint.files {
        let content = read_all(&**file);
        assert_eq!(content.len() as u64, *bytes);
        write(to, name, &content);
    }
}

/// Copies the volumes and the small files.
fn copy_volumes(store: &Store, from: &MemoryDisk, to: &MemoryDisk) {
    store.log().sync().unwrap();
    let newest = store.log().synced().segment();
    let begun = store.log().segments().into_iter().filter(|segment| segment.number <= newest);
    let volumes: Vec<_> = begun.map(|segment| (segment.number, segment.nonce)).collect();
    for (number, _) in &volumes {
        let name = format!("volumes/{}", segment_name(*number));
        write(to, &name, &read_all(&*from.open(&name, Open::default()).unwrap()));
    }
    for (name, bytes) in store.metadata_files(&volumes).files {
        write(to, &name, &bytes);
    }
}

/// Creates a disk with the directories of a store.
fn empty_copy() -> MemoryDisk {
    let disk = MemoryDisk::default();
    ["volumes", "objects", "index"].iter().for_each(|dir| disk.create_dir(dir).unwrap());
    disk
}

/// Copies a store with its checkpoint.
fn copy_of(store: &Store, from: &MemoryDisk, checkpoint: &CheckpointFiles) -> MemoryDisk {
    let to = empty_copy();
    copy_checkpoint(checkpoint, &to);
    copy_volumes(store, from, &to);
    copy_big_files(store, &to);
    to
}

fn open_copy(disk: &MemoryDisk) -> (Store, RecoveryReport) {
    Store::open_on(Arc::new(disk.clone()), without_checkpoints()).unwrap()
}

/// Stores objects of several lengths.
fn fill(store: &Store, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let length = if number % 10 == 0 { BIG + 1000 } else { 20_000 };
        put(store, &format!("{number:04}"), &random_bytes(number, length));
    }
}

#[test]
fn copy_has_the_versions() {
    let disk = MemoryDisk::default();
    let store = store_on(&disk, without_checkpoints());
    store.set_versioning(BUCKET, Versioning::Enabled).unwrap();
    for round in 0..3 {
        for number in 0..20 {
            let length = if number == 0 { BIG + 1000 } else { 2000 };
            put(&store, &number.to_string(), &random_bytes(100 * round + number, length));
        }
        assert!(store.delete(BUCKET, "7").unwrap());
        if round == 1 {
            store.write_checkpoint().unwrap();
        }
    }
    let copy = copy_of(&store, &disk, &store.checkpoint().unwrap().unwrap());
    let (copied, recovered) = open_copy(&copy);
    assert_eq!((recovered.index_rebuilt, recovered.damage), (None, vec![]));
    assert_eq!(copied.versioning(BUCKET).unwrap(), Versioning::Enabled);
    let versions = list_all(&store, 100);
    assert_eq!((versions.len(), list_all(&copied, 100)), (63, versions.clone()));
    for version in versions.iter().filter(|version| !version.is_delete_marker) {
        let (key, id) = (&version.info.key, version.info.version_id);
        let [one, two] = [&store, &copied]
            .map(|store| content(&store.get_version(BUCKET, key, id).unwrap()).unwrap());
        assert!(one == two, "{key} {id}");
    }
}

#[test]
fn copy_has_the_objects_and_uses_the_checkpoint() {
    let disk = MemoryDisk::default();
    let store = store_on(&disk, without_checkpoints());
    fill(&store, 0..300);
    let none = Attributes::new();
    let upload = store.start_upload(BUCKET, "upload", &none).unwrap();
    let parts: [(u16, Etag); 2] = [1, 2].map(|number| {
        put_part(&store, "upload", &upload, number, &random_bytes(number.into(), 9000))
    });
    assert_eq!(store.checkpoint_lsn(), None);
    assert!(store.checkpoint().unwrap().is_none());
    store.write_checkpoint().unwrap();
    fill(&store, 300..320);
    assert!(store.delete(BUCKET, "0000").unwrap() && store.delete(BUCKET, "0001").unwrap());
    store.copy((BUCKET, "0010"), (BUCKET, "copy"), None, &Precondition::None).unwrap();

    let checkpoint = store.checkpoint().unwrap().unwrap();
    assert_eq!(store.checkpoint_lsn(), Some(checkpoint.lsn));
    assert!(checkpoint.lsn < store.log().synced());
    let copy = copy_of(&store, &disk, &checkpoint);
    let (copied, recovered) = open_copy(&copy);
    assert_eq!((recovered.index_rebuilt, recovered.damage), (None, vec![]));
    assert_eq!(recovered.orphans_removed, 0);
    assert_eq!(copied.checkpoint_lsn(), Some(checkpoint.lsn));
    assert!(dump(&copied) == dump(&store));
    let complete = |store: &Store| {
        store.complete_upload(BUCKET, "upload", &upload, &parts, &none, &Precondition::None)
    };
    complete(&copied).unwrap();
    complete(&store).unwrap();
    assert_eq!(get(&copied, "upload"), get(&store, "upload"));
    assert_eq!(copied.verify(&mut |_, _| ()).unwrap().damage, []);
}

#[test]
fn copy_does_not_use_a_checkpoint_before_the_removal_of_volumes() {
    let disk = MemoryDisk::default();
    let store = store_on(&disk, without_checkpoints());
    let oldest = || store.log().segments().first().unwrap().number;
    fill(&store, 0..400);
    store.write_checkpoint().unwrap();
    let earlier = store.checkpoint().unwrap().unwrap();
    (0..200).for_each(|number| assert!(store.delete(BUCKET, &format!("{number:04}")).unwrap()));
    store.write_checkpoint().unwrap();
    let before = oldest();
    fill(&store, 200..400);
    store.compact().unwrap();
    assert_ne!(oldest(), before);
    let copy_with = |checkpoint| {
        let (copied, recovered) = open_copy(&copy_of(&store, &disk, checkpoint));
        assert_eq!(recovered.damage, []);
        assert!(dump(&copied) == dump(&store));
        (recovered.index_rebuilt, copied.checkpoint_lsn())
    };
    let current = store.checkpoint().unwrap().unwrap();
    assert_eq!(copy_with(&current), (None, Some(current.lsn)));
    let (why, _) = copy_with(&earlier);
    assert_eq!(why.unwrap(), "the checkpoint is older than the manifest");
}

#[test]
fn written_checkpoint_has_all_needles_and_is_written_once() {
    let store = store_on(&MemoryDisk::default(), without_checkpoints());
    fill(&store, 0..5);
    store.write_checkpoint().unwrap();
    assert_eq!(store.checkpoint_lsn(), Some(store.log().synced()));
    let names = |store: &Store| -> Vec<String> {
        let files = store.checkpoint().unwrap().unwrap().files;
        files.into_iter().map(|file| file.name).collect()
    };
    let written = names(&store);
    store.write_checkpoint().unwrap();
    assert_eq!(names(&store), written);
    fill(&store, 5..6);
    store.write_checkpoint().unwrap();
    assert_ne!(names(&store), written);
    assert_eq!(store.checkpoint_lsn(), Some(store.log().synced()));
}

#[test]
fn checkpoints_of_a_busy_store_are_consistent() {
    let disk = MemoryDisk::default();
    // Checkpoints and merges of runs are frequent.
    let store = store_on(&disk, small());
    let is_stopped = AtomicBool::new(false);
    thread::scope(|scope| {
        let _writer = scope.spawn(|| {
            for number in 0.. {
                if is_stopped.load(Ordering::Relaxed) {
                    break;
                }
                put(&store, &format!("{number:06}"), b"bytes");
            }
        });
        let mut places = BTreeSet::new();
        while places.len() < 10 {
            let Some(checkpoint) = store.checkpoint().unwrap() else { continue };
            if places.insert(checkpoint.lsn) {
                let (copied, recovered) = open_copy(&copy_of(&store, &disk, &checkpoint));
                assert_eq!((recovered.index_rebuilt, recovered.damage), (None, vec![]));
                assert_eq!(copied.checkpoint_lsn(), Some(checkpoint.lsn));
                assert_eq!(list(&copied, BUCKET).len() as u64, recovered.objects);
            }
        }
        is_stopped.store(true, Ordering::Relaxed);
    });
}

#[test]
fn records_name_the_files_of_big_objects_and_parts() {
    let disk = disk_dir();
    let store = Store::open(disk.path(), without_checkpoints()).unwrap().0;
    store.create_bucket(BUCKET).unwrap();
    put(&store, "small", b"small");
    put(&store, "big", &random_bytes(1, BIG));
    let upload = store.start_upload(BUCKET, "upload", &Attributes::new()).unwrap();
    let parts = [1, 2].map(|number| put_part(&store, "upload", &upload, number, b"part"));
    let none = Attributes::new();
    store.complete_upload(BUCKET, "upload", &upload, &parts, &none, &Precondition::None).unwrap();
    store.delete(BUCKET, "small").unwrap();
    let files: Vec<Vec<String>> =
        records(&store).iter().map(|payload| Store::record_files(payload).unwrap()).collect();
    let counts: Vec<usize> = files.iter().map(Vec::len).collect();
    assert_eq!(counts, [0, 0, 1, 0, 1, 1, 2, 0]);
    assert_eq!(files[6], [files[4].clone(), files[5].clone()].concat());
    let mut named: Vec<&str> =
        files[..6].iter().flatten().map(|name| name.strip_prefix("objects/").unwrap()).collect();
    named.sort_unstable();
    assert_eq!(named, big_files(disk.path()));
}

#[test]
fn malformed_record_is_an_error() {
    let store = store_on(&MemoryDisk::default(), without_checkpoints());
    put(&store, "key", b"bytes");
    let record = records(&store).pop().unwrap();
    assert_eq!(Store::record_files(&record).unwrap(), [""; 0]);
    for length in 1..record.len() {
        let outcome = Store::record_files(&record[..length]);
        assert!(matches!(outcome, Err(Error::Invalid { .. })), "{length}: {outcome:?}");
    }
    let mut flipped = record;
    flipped[10] ^= 1;
    assert!(matches!(Store::record_files(&flipped), Err(Error::Invalid { .. })));
}

#[test]
fn only_files_of_big_objects_and_of_the_index_are_opened() {
    let store = store_on(&MemoryDisk::default(), without_checkpoints());
    put(&store, "big", &random_bytes(1, BIG));
    store.write_checkpoint().unwrap();
    let checkpoint = store.checkpoint().unwrap().unwrap();
    let index_files: Vec<&str> = checkpoint.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(index_files.last(), Some(&"index/CATALOG"));
    let object_files = Store::record_files(&records(&store)[1]).unwrap();
    for name in index_files.into_iter().chain(object_files.iter().map(String::as_str)) {
        assert!(store.open_file(name).unwrap().is_some(), "{name}");
    }
    for name in [&format!("objects/{:032x}", 7), "index/0000000007.keys"] {
        assert!(store.open_file(name).unwrap().is_none(), "{name}");
    }
    let id = object_files[0].strip_prefix("objects/").unwrap();
    for name in [
        "",
        "STORE",
        "MANIFEST",
        "LOCK",
        "volumes/0000000001.segment",
        "index",
        "index/",
        "index/CATALOG.new",
        "index/../STORE",
        "objects/../STORE",
        "objects/7",
        id,
        &format!("/objects/{id}"),
        &format!("objects/{id}.new"),
        &format!("index/{id}"),
        "objects/CATALOG",
    ] {
        let outcome = store.open_file(name);
        assert!(matches!(outcome, Err(Error::Invalid { .. })), "{name}: {outcome:?}");
    }
}

#[test]
fn copy_of_a_store_that_lost_a_volume_reports_the_loss() {
    let disk = MemoryDisk::default();
    let store = store_on(&disk, without_checkpoints());
    fill(&store, 0..600);
    store.close().unwrap();
    // Opening adds all volumes to the manifest.
    open_copy(&disk).0.close().unwrap();
    let lost = MemoryDisk::on(&disk.medium());
    for name in lost.list("index").unwrap() {
        lost.remove(&format!("index/{name}")).unwrap();
    }
    for name in ["0000000002.segment", "0000000002.index"] {
        lost.remove(&format!("volumes/{name}")).unwrap();
    }
    let (damaged, recovered) = open_copy(&lost);
    assert!(!recovered.hidden.is_empty(), "{recovered:?}");
    let to = empty_copy();
    copy_volumes(&damaged, &lost, &to);
    copy_big_files(&damaged, &to);
    let (copied, found) = open_copy(&to);
    assert_eq!(found.hidden.len(), recovered.hidden.len());
    assert!(matches!(copied.get(BUCKET, "absent"), Err(Error::Damaged { .. })));

    damaged.accept_damage().unwrap();
    let to = empty_copy();
    copy_volumes(&damaged, &lost, &to);
    copy_big_files(&damaged, &to);
    let (copied, found) = open_copy(&to);
    assert_eq!(found.hidden, []);
    assert!(matches!(copied.get(BUCKET, "absent"), Err(Error::NoSuchKey { .. })));
}
