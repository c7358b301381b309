//! Tests of the store on the real kernel, against a model, and with faults and power cuts.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "test helpers fail and print like tests"
)]

mod compaction;
mod contents;
mod cost;
mod crash;
mod damage;
mod damage_sweep;
mod deletions;
mod events;
mod exact;
mod faults;
mod full;
mod get_many;
mod hidden_keys;
mod in_use;
mod key_move;
mod kill;
mod lifecycle;
mod lifecycle_tags;
mod listing;
mod locked;
mod model;
mod objects;
mod pinned;
mod power;
mod put_many;
mod put_order;
mod quotas;
mod ranges;
mod read_only;
mod recovery;
mod releases;
mod replication;
mod sample;
mod script;
mod script_inputs;
mod settings;
mod small_store;
mod snapshot;
mod start_put;
mod steady;
mod threads;
mod uploads;
mod versions;
mod victim;
mod volume_map;
mod wrong_clock;

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use haul_file_store::{
    Attributes, Etag, ListEntry, ListRequest, ListUploadsRequest, Object, ObjectInfo, Options,
    Precondition, RecoveryReport, Result, Store, UploadInfo, UploadListEntry,
};
use haul_testing::{Random, disk_dir};
use tempfile::TempDir;

/// Returns options with the smallest volumes, so that a test has many of them.
fn small() -> Options {
    // Without the watermarks of an idle log, because tests compare exact costs.
    let (volume_bytes, big_object_bytes) = (4 << 20, BIG as u64);
    // With so little memory for the index that checkpoints are frequent.
    let index_memory_bytes = 8 << 10;
    Options {
        volume_bytes,
        big_object_bytes,
        idle_watermark_ms: 0,
        index_memory_bytes,
        lifecycle_check_every: Duration::ZERO,
        ..Options::default()
    }
}

/// The length from which on an object of a [`small`] store is big.
const BIG: usize = 64 << 10;

/// Returns options like [`small`], with so much memory for the index that no checkpoint is written.
fn without_checkpoints() -> Options {
    Options { index_memory_bytes: 64 << 20, ..small() }
}

const BUCKET: &str = "bucket";

fn reopen(dir: &Path) -> (Store, RecoveryReport) {
    Store::open(dir, small()).unwrap()
}

/// Creates a store with one bucket.
fn new_store() -> (TempDir, Store) {
    let dir = disk_dir();
    let (store, _) = reopen(dir.path());
    store.create_bucket(BUCKET).unwrap();
    (dir, store)
}

fn put(store: &Store, key: &str, bytes: &[u8]) -> ObjectInfo {
    try_put(store, key, bytes).unwrap()
}

fn try_put(store: &Store, key: &str, bytes: &[u8]) -> Result<ObjectInfo> {
    store.put(BUCKET, key, bytes, &Attributes::new(), &Precondition::None)
}

/// Returns all bytes of an object.
fn content(object: &Object) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < object.info.bytes {
        let read = object.read(bytes.len() as u64, usize::MAX)?;
        assert!(!read.is_empty(), "the object ends before its length");
        bytes.extend_from_slice(&read);
    }
    assert!(object.read(object.info.bytes, 1)?.is_empty(), "the object is longer than its length");
    Ok(bytes)
}

fn get(store: &Store, key: &str) -> Vec<u8> {
    try_get(store, key).unwrap()
}

fn try_get(store: &Store, key: &str) -> Result<Vec<u8>> {
    content(&store.get(BUCKET, key)?)
}

fn random_bytes(seed: u64, length: usize) -> Vec<u8> {
    Random(seed).bytes(length)
}

/// Adds a part to an upload. Returns its entry for the completion.
fn put_part(store: &Store, key: &str, upload: &str, number: u16, bytes: &[u8]) -> (u16, Etag) {
    let mut writer = store.part_writer(BUCKET, Some(bytes.len() as u64)).unwrap();
    writer.write(bytes).unwrap();
    let written = writer.finish().unwrap();
    let part = store.put_part(BUCKET, key, upload, number, written, &Attributes::new()).unwrap();
    (number, part.etag)
}

/// Returns the objects of a bucket, listed in pages.
fn list(store: &Store, bucket: &str) -> Vec<ObjectInfo> {
    let mut found: Vec<ObjectInfo> = Vec::new();
    loop {
        let after = found.last().map(|info| info.key.clone());
        let request = ListRequest { after: after.as_deref(), limit: 100, ..ListRequest::default() };
        let page = store.list(bucket, &request).unwrap();
        found.extend(page.entries.into_iter().map(|line| match line {
            ListEntry::Object(info) => info,
            ListEntry::Prefix(prefix) => panic!("{prefix:?} without a delimiter"),
        }));
        if !page.more {
            return found;
        }
    }
}

/// Returns all unfinished uploads of a bucket with their attributes.
fn uploads_of(store: &Store, bucket: &str) -> Result<Vec<UploadInfo>> {
    let mut found: Vec<UploadInfo> = Vec::new();
    loop {
        let last = found.last().map(|upload| (upload.key.clone(), upload.id.clone()));
        let request = ListUploadsRequest {
            after: last.as_ref().map(|(key, _)| &**key),
            after_upload: last.as_ref().map(|(_, id)| &**id),
            limit: 2,
            ..ListUploadsRequest::default()
        };
        let page = store.list_uploads(bucket, &request)?;
        for entry in page.entries {
            match entry {
                UploadListEntry::Upload { key, id } => found.push(store.upload(bucket, &key, &id)?),
                UploadListEntry::Prefix(prefix) => panic!("{prefix:?} without a delimiter"),
            }
        }
        if !page.more {
            return Ok(found);
        }
    }
}

/// The bytes and attributes of the objects, by bucket and key.
type Dump = BTreeMap<String, BTreeMap<String, (Vec<u8>, Attributes)>>;

/// Reads the whole store, and checks that listed objects are readable and the totals are exact.
fn dump(store: &Store) -> Dump {
    let (mut dump, stats) = (Dump::new(), store.stats());
    let (mut objects, mut object_bytes) = (0, 0);
    for bucket in store.buckets().unwrap() {
        let mut found = BTreeMap::new();
        let mut bytes = 0;
        for info in list(store, &bucket.name) {
            let object = store.get(&bucket.name, &info.key).unwrap();
            assert_eq!(object.info, info);
            assert_eq!(store.stat(&bucket.name, &info.key).unwrap(), info);
            let bytes_read = content(&object).unwrap();
            if let Some(cached) = store.get_cached(&bucket.name, &info.key).unwrap() {
                assert_eq!((&cached.info, &cached.attributes), (&info, &object.attributes));
                assert!(content(&cached).unwrap() == bytes_read, "{}", info.key);
            }
            let head = store.head_cached(&bucket.name, &info.key).unwrap();
            assert!(head.is_none_or(|head| head.info == info), "{}", info.key);
            bytes += info.bytes;
            found.insert(info.key, (bytes_read, object.attributes));
        }
        assert_eq!((bucket.objects, bucket.bytes), (found.len() as u64, bytes), "{}", bucket.name);
        objects += bucket.objects;
        object_bytes += bytes;
        dump.insert(bucket.name, found);
    }
    let counted = (stats.buckets, stats.objects, stats.object_bytes);
    assert_eq!(counted, (dump.len() as u64, objects, object_bytes));
    dump
}

/// Returns the names of the files of big objects in the directory of a store.
fn big_files(dir: &Path) -> Vec<String> {
    file_names(&dir.join("objects"))
}

fn file_names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Flips a bit of a file.
fn flip(path: &Path, offset: u64) {
    let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[byte[0] ^ 1], offset).unwrap();
}
