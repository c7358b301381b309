//! File stores whose files a target edits, and checks of what they return.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use haul_disk_sim::{Medium, MemoryDisk, Survival};
use haul_file_store::{
    Attributes, Error, Expiry, Lifecycle, LifecycleRule, ListRequest, Object, Options,
    Precondition, Result, Store,
};

use crate::edit::Editable;
use crate::formats::{segment, store_files};

/// The bucket of all objects.
pub(crate) const BUCKET: &str = "bucket";

/// The length from which on an object has a file of its own.
pub(crate) const BIG_OBJECT_BYTES: u64 = 128 << 10;

/// A store before it is edited.
#[derive(Debug)]
pub(crate) struct StoreBase {
    /// The disk of the store.
    pub(crate) medium: Medium,
    /// The files of the store.
    pub(crate) files: Vec<Editable>,
    is_closed: bool,
    /// The contents that each key ever had, the current one last; `None` if it was deleted.
    history: History,
}

type History = BTreeMap<String, Vec<Option<Vec<u8>>>>;

/// A store that was closed, and one that was killed.
pub(crate) static STORES: LazyLock<Vec<StoreBase>> =
    LazyLock::new(|| vec![StoreBase::new(true), StoreBase::new(false)]);

/// Returns options with the smallest volumes, frequent checkpoints, and no waiting.
#[must_use]
pub(crate) fn options() -> Options {
    Options {
        volume_bytes: 4 << 20,
        big_object_bytes: BIG_OBJECT_BYTES,
        idle_watermark_ms: 0,
        index_memory_bytes: 8 << 10,
        lifecycle_check_every: Duration::ZERO,
        stall_max: Duration::from_millis(100),
        ..Options::default()
    }
}

/// Opens a store.
///
/// # Errors
/// Fails as [`Store::open_on`] does.
pub(crate) fn open(disk: &MemoryDisk) -> Result<Store> {
    Store::open_on(Arc::new(disk.clone()), options()).map(|(store, _)| store)
}

/// Stores an object.
///
/// # Errors
/// Fails as [`Store::put`] does.
pub(crate) fn put(store: &Store, key: &str, bytes: &[u8]) -> Result<()> {
    let attributes = Attributes::from_iter([("content-type", "text/plain")]);
    store.put(BUCKET, key, bytes, &attributes, &Precondition::None).map(drop)
}

/// Reads an object.
///
/// # Errors
/// Fails as [`Store::get`] does.
pub(crate) fn get(store: &Store, key: &str) -> Result<Vec<u8>> {
    read(&store.get(BUCKET, key)?)
}

/// Reads the content of an object.
///
/// # Errors
/// Fails as [`haul_file_store::Object::read`] does.
pub(crate) fn read(object: &Object) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < object.info.bytes {
        let piece = object.read(bytes.len() as u64, 1 << 20)?;
        assert!(!piece.is_empty(), "{} ends before its length", object.info.key);
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

fn content(seed: u8, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| seed ^ (at % 253).to_le_bytes()[0]).collect()
}

fn lifecycle() -> Lifecycle {
    let rule = LifecycleRule {
        id: "rule".to_owned(),
        enabled: true,
        prefix: "tmp/".to_owned(),
        expire: Some(Expiry::After(Duration::from_hours(24))),
        ..LifecycleRule::default()
    };
    Lifecycle { rules: vec![rule] }
}

/// Adds a part to an upload, and completes it.
fn upload(store: &Store, key: &str, bytes: &[u8], is_completed: bool) {
    let none = Attributes::new();
    let id = store.start_upload(BUCKET, key, &none).unwrap();
    let mut writer = store.part_writer(BUCKET, Some(bytes.len() as u64)).unwrap();
    writer.write(bytes).unwrap();
    let written = writer.finish().unwrap();
    let part = store.put_part(BUCKET, key, &id, 1, written, &none).unwrap();
    if is_completed {
        let parts = [(1, part.etag)];
        store.complete_upload(BUCKET, key, &id, &parts, &none, &Precondition::None).unwrap();
    }
}

/// Executes all kinds of changes, and records the contents of the keys.
fn fill(disk: &MemoryDisk, history: &mut History) -> Store {
    let store = open(disk).unwrap();
    store.create_bucket(BUCKET).unwrap();
    store.set_lifecycle(BUCKET, &lifecycle()).unwrap();
    let mut change = |store: &Store, key: &str, bytes: Option<Vec<u8>>| {
        match &bytes {
            Some(bytes) => put(store, key, bytes).unwrap(),
            None => assert!(store.delete(BUCKET, key).unwrap()),
        }
        history.entry(key.to_owned()).or_default().push(bytes);
    };
    for number in 0..24 {
        change(&store, &format!("key {number}"), Some(content(number, 50)));
    }
    for (key, bytes) in [("empty", 0), ("replaced", 900), ("deleted", 500), ("blocks", 100_000)] {
        change(&store, key, Some(content(1, bytes)));
    }
    change(&store, "big", Some(content(2, 200_000)));
    change(&store, "replaced", Some(content(3, 700)));
    change(&store, "deleted", None);
    store.create_bucket("other").unwrap();
    store.delete_bucket("other").unwrap();
    store.close().unwrap();
    // The checkpoint that is due is written now.
    let store = open(disk).unwrap();
    for number in 0..4 {
        change(&store, &format!("key {number}"), Some(content(100 + number, 60)));
    }
    change(&store, "key 5", None);
    upload(&store, "uploaded", &content(4, 800), true);
    upload(&store, "pending", &content(5, 300), false);
    history.insert("uploaded".to_owned(), vec![None, Some(content(4, 800))]);
    history.insert("pending".to_owned(), vec![None]);
    store
}

impl StoreBase {
    fn new(is_closed: bool) -> Self {
        let (disk, mut history) = (MemoryDisk::default(), History::new());
        let store = fill(&disk, &mut history);
        if is_closed {
            store.close().unwrap();
        }
        let mut medium = disk.medium().cut(Survival::Everything);
        let names: Vec<String> = medium.file_names().map(str::to_owned).collect();
        let editable = |name: &String| {
            let bytes = medium.file(name);
            let mut again = bytes.clone();
            store_files::set_checksums(name, &mut again);
            assert!(again == *bytes, "the checksums of {name} are computed otherwise");
            let mut file = Editable::by_sectors(name, &bytes);
            if name.ends_with(".segment") {
                file.places = segment::places(&bytes);
            }
            file
        };
        let files = names.iter().map(editable).collect();
        Self { medium, files, is_closed, history }
    }

    /// Opens an edited store, and checks what it returns. Without set checksums, that is what was
    /// stored, and of a closed store with one edited file, the newest content or an error.
    pub(crate) fn check(&self, medium: &Medium, edited_files: usize, has_checksums: bool) {
        let disk = MemoryDisk::on(medium);
        let Ok(mut store) = open(&disk) else { return };
        let list = |store: &Store| -> Result<Vec<String>> {
            let page = store.list(BUCKET, &ListRequest { limit: 1000, ..ListRequest::default() });
            Ok(page?.entries.iter().map(|entry| entry.name().to_owned()).collect())
        };
        let mut listed = list(&store);
        if matches!(&listed, Err(Error::Damaged { file, .. }) if file.starts_with("memory/index")) {
            // The listing has found a damaged run, which the next opening rebuilds.
            drop(store);
            let Ok(again) = open(&disk) else { return };
            (listed, store) = (list(&again), again);
        }
        for key in listed.iter().flatten() {
            assert!(has_checksums || self.history.contains_key(key), "{key} was never stored");
            drop(get(&store, key));
        }
        let is_exact = self.is_closed && edited_files <= 1;
        for (key, contents) in self.history.iter().filter(|_| !has_checksums) {
            let found = match get(&store, key) {
                Ok(bytes) => Some(bytes),
                Err(Error::NoSuchKey { .. } | Error::NoSuchBucket { .. }) => None,
                Err(Error::Damaged { .. }) => continue,
                Err(error) => panic!("{key}: {error:?}"),
            };
            assert!(found.is_none() || contents.contains(&found), "{key} has foreign bytes");
            assert!(!is_exact || contents.last() == Some(&found), "{key} has older bytes");
        }
        drop(store.verify(&mut |_, _| {}));
        check_continuation(store, &disk);
    }
}

/// Stores an object, and checks that it is still there after the store was opened again.
fn check_continuation(store: Store, disk: &MemoryDisk) {
    const KEY: &str = "stored afterwards";
    let is_stored = put(&store, KEY, b"bytes").is_ok();
    if is_stored {
        assert_eq!(get(&store, KEY).unwrap(), b"bytes");
    }
    drop(store);
    let store = open(disk).unwrap();
    if is_stored {
        assert_eq!(get(&store, KEY).unwrap(), b"bytes", "it is lost");
    }
}
