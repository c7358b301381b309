//! A store with all kinds of needles in several volumes, to be damaged, and its valid responses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use haul_disk::{Disk, Open, read_full};
use haul_disk_sim::{Medium, MemoryDisk, Survival};
use haul_file_store::{
    Attributes, Damage, Error, ListRequest, Options, Precondition, RecoveryReport, Store,
};
use haul_testing::{Random, eventually};

use crate::{BIG, BUCKET, list, put_part, uploads_of};

/// A response of a store for a key.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Answer {
    Bytes(Vec<u8>),
    Absent,
    Damaged(String),
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{} bytes {:?}…", bytes.len(), bytes.first()),
            Self::Absent => write!(f, "absent"),
            Self::Damaged(place) => write!(f, "damaged: {place}"),
        }
    }
}

pub(crate) fn answer_in(store: &Store, bucket: &str, key: &str) -> Answer {
    match store.get(bucket, key).and_then(|object| crate::content(&object)) {
        Ok(bytes) => Answer::Bytes(bytes),
        Err(Error::NoSuchKey { .. } | Error::NoSuchBucket { .. }) => Answer::Absent,
        Err(Error::Damaged { file, offset, .. }) => {
            Answer::Damaged(format!("{} {offset}", file.display()))
        }
        Err(other) => panic!("{key}: {other:?}"),
    }
}

/// Returns the medium after all pending writes.
pub(crate) fn settled(disk: &MemoryDisk) -> Medium {
    disk.medium().cut(Survival::Everything)
}

pub(crate) fn names_key(damage: &[Damage], bucket: &str, key: &str) -> bool {
    let is_it = |damage: &Damage| {
        damage.bucket.as_deref() == Some(bucket) && damage.key.as_deref() == Some(key)
    };
    damage.iter().any(is_it)
}

/// The expected state: every key and bucket that was ever used.
#[derive(Debug, Default)]
struct Expected {
    /// The content of each key; `None` if it was deleted or never completed.
    objects: BTreeMap<(String, String), Option<Vec<u8>>>,
    buckets: BTreeSet<String>,
    /// The key and the part numbers of each upload by ID.
    uploads: BTreeMap<String, (String, Vec<u16>)>,
}

/// A store with all kinds of needles in several volumes.
pub(crate) struct Victim {
    pub(crate) medium: Medium,
    options: Options,
    expected: Expected,
}

/// Requests all keys in one page.
fn whole() -> ListRequest<'static> {
    ListRequest { limit: usize::MAX, ..ListRequest::default() }
}

/// Returns content of a random length, mostly short, so that records are close to each other.
fn content_bytes(random: &mut Random) -> Vec<u8> {
    let length = match random.below(12) {
        0 => BIG as u64 + random.below(2 * BIG as u64),
        1 => 0,
        _ => random.below(1500),
    };
    random.bytes(usize::try_from(length).unwrap())
}

impl Victim {
    pub(crate) fn new(seed: u64, acts: u32, is_closed: bool, options: Options) -> Self {
        let (disk, mut random) = (MemoryDisk::default(), Random(seed));
        let open = || Store::open_on(Arc::new(disk.clone()), options.clone()).unwrap().0;
        let mut store = open();
        let mut expected = Expected::default();
        store.create_bucket(BUCKET).unwrap();
        expected.buckets.insert(BUCKET.to_owned());
        for act in 0..acts {
            expected.act(&store, &mut random);
            // Sometimes enough to fill a volume.
            if act % (acts / 3) == acts / 6 {
                for filler in 0..70 {
                    let key = format!("filler {act} {filler}");
                    expected.put(&store, BUCKET, &key, random.bytes(BIG - 1));
                }
            }
            if random.below(u64::from(acts / 2)) == 0 {
                store.close().unwrap();
                store = open();
            }
        }
        let last = "the last object of all";
        expected.put(&store, BUCKET, last, b"bytes".to_vec());
        if is_closed {
            store.close().unwrap();
            return Self { medium: settled(&disk), options, expected };
        }
        // The process is killed once the heads are in the indexes; before that, the last ones have
        // no second copy.
        eventually("the index holds the last key", || indexes_hold(&disk, last.as_bytes()));
        let medium = settled(&disk);
        Self { medium, options, expected }
    }

    /// Opens the damaged store and checks all responses. Returns the number of errors.
    pub(crate) fn check(&self, disk: &MemoryDisk, what: &str) -> usize {
        let disk = Arc::new(disk.clone());
        let (mut store, mut recovered) =
            Store::open_on(Arc::clone(&disk) as _, self.options.clone()).unwrap();
        // The first listing detects a damaged run. Reopening the store rebuilds it.
        if let Err(Error::Damaged { file, .. }) = store.list(BUCKET, &whole())
            && file.starts_with("memory/index")
        {
            assert!(store.stats().damaged_locations > 0, "{what}: the damage is not reported");
            store.close().unwrap();
            (store, recovered) = Store::open_on(disk, self.options.clone()).unwrap();
        }
        let errors = self.expected.check(&store, &recovered, what);
        if errors > 0 {
            assert!(store.stats().damaged_locations > 0, "{what}: the damage is not reported");
        }
        errors
    }
}

fn indexes_hold(disk: &MemoryDisk, key: &[u8]) -> bool {
    let names = disk.list("volumes").unwrap();
    names.iter().filter(|name| name.ends_with(".index")).any(|name| {
        let file = disk.open(&format!("volumes/{name}"), Open::default()).unwrap();
        let mut bytes = vec![0; usize::try_from(file.bytes().unwrap()).unwrap()];
        let read = read_full(&*file, &mut bytes, 0).unwrap();
        bytes[..read].windows(key.len()).any(|window| window == key)
    })
}

impl Expected {
    fn put(&mut self, store: &Store, bucket: &str, key: &str, bytes: Vec<u8>) {
        store.put(bucket, key, &bytes, &Attributes::new(), &Precondition::None).unwrap();
        self.objects.insert((bucket.to_owned(), key.to_owned()), Some(bytes));
    }

    fn act(&mut self, store: &Store, random: &mut Random) {
        let key = format!("key {}", random.below(20));
        let name = (BUCKET.to_owned(), key.clone());
        match random.below(24) {
            0..6 => {
                store.delete(BUCKET, &key).unwrap();
                self.objects.insert(name, None);
            }
            6 => {
                let other = format!("other-{}", random.below(2));
                if !self.buckets.insert(other.clone()) {
                    let keys: Vec<String> =
                        list(store, &other).into_iter().map(|info| info.key).collect();
                    for key in keys {
                        store.delete(&other, &key).unwrap();
                        self.objects.insert((other.clone(), key), None);
                    }
                    store.delete_bucket(&other).unwrap();
                    self.buckets.remove(&other);
                } else {
                    store.create_bucket(&other).unwrap();
                    self.put(store, &other, &key, content_bytes(random));
                }
            }
            7 => {
                let id = store.start_upload(BUCKET, &key, &Attributes::new()).unwrap();
                self.uploads.insert(id, (key, Vec::new()));
            }
            8..11 => {
                let count = self.uploads.len() as u64;
                if count == 0 {
                    return;
                }
                let nth = usize::try_from(random.below(count)).unwrap();
                let (id, (key, parts)) = self.uploads.iter_mut().nth(nth).unwrap();
                let number = u16::try_from(parts.len() + 1).unwrap();
                put_part(store, key, id, number, &random.bytes(700));
                parts.push(number);
            }
            11..13 => {
                let Some((id, (key, numbers))) = self.uploads.pop_first() else { return };
                if numbers.is_empty() || random.below(2) == 0 {
                    store.abort_upload(BUCKET, &key, &id).unwrap();
                    return;
                }
                let parts = store.parts(BUCKET, &key, &id).unwrap();
                let parts: Vec<_> = parts.iter().map(|part| (part.number, part.etag)).collect();
                let none = Precondition::None;
                store
                    .complete_upload(BUCKET, &key, &id, &parts, &Attributes::new(), &none)
                    .unwrap();
                let bytes = crate::content(&store.get(BUCKET, &key).unwrap()).unwrap();
                self.objects.insert((BUCKET.to_owned(), key), Some(bytes));
            }
            _ => self.put(store, BUCKET, &key, content_bytes(random)),
        }
    }

    fn check(&self, store: &Store, recovered: &RecoveryReport, what: &str) -> usize {
        let mut in_error = Vec::new();
        for ((bucket, key), bytes) in &self.objects {
            let found = answer_in(store, bucket, key);
            let expected =
                bytes.as_ref().map_or(Answer::Absent, |bytes| Answer::Bytes(bytes.clone()));
            match found {
                Answer::Damaged(_) => in_error.push((bucket, key)),
                found => assert!(found == expected, "{what}: {key} is {found:?}, not {expected:?}"),
            }
        }
        self.check_listings(store, recovered, what);
        let uploads = self.check_uploads(store, what);
        if !in_error.is_empty() {
            let verified = store.verify(&mut |_, _| {}).unwrap();
            let is_named = |(bucket, key): &&(&String, &String)| {
                !recovered.hidden.is_empty() || names_key(&verified.damage, bucket, key)
            };
            let unnamed: Vec<_> = in_error.iter().filter(|name| !is_named(name)).collect();
            assert!(unnamed.is_empty(), "{what}: {unnamed:?} of {:?}", verified.damage);
            for hidden in &recovered.hidden {
                assert!(verified.damage.contains(hidden), "{what}: {hidden:?} is not named");
            }
        }
        in_error.len() + uploads
    }

    fn check_listings(&self, store: &Store, recovered: &RecoveryReport, what: &str) {
        match store.buckets() {
            Ok(buckets) => {
                let names: BTreeSet<String> = buckets.into_iter().map(|found| found.name).collect();
                assert_eq!(names, self.buckets, "{what}");
                for bucket in &self.buckets {
                    let listed = list(store, bucket).into_iter().map(|info| info.key);
                    let objects = self.objects.iter();
                    let expected = objects
                        .filter(|((name, _), bytes)| name == bucket && bytes.is_some())
                        .map(|((_, key), _)| key.clone());
                    assert!(listed.eq(expected), "{what}: the listing of {bucket}");
                }
            }
            Err(Error::Damaged { .. }) => assert!(!recovered.hidden.is_empty(), "{what}"),
            Err(other) => panic!("{what}: {other:?}"),
        }
    }

    fn check_uploads(&self, store: &Store, what: &str) -> usize {
        let mut in_error = 0;
        match uploads_of(store, BUCKET) {
            Ok(uploads) => {
                let ids: BTreeSet<&str> = uploads.iter().map(|upload| &*upload.id).collect();
                let expected: BTreeSet<&str> = self.uploads.keys().map(|id| &**id).collect();
                assert_eq!(ids, expected, "{what}");
            }
            Err(Error::Damaged { .. }) => in_error += 1,
            Err(other) => panic!("{what}: {other:?}"),
        }
        for (id, (key, numbers)) in &self.uploads {
            match store.parts(BUCKET, key, id) {
                Ok(parts) => {
                    let found: Vec<u16> = parts.iter().map(|part| part.number).collect();
                    assert_eq!(found, *numbers, "{what}: parts of {id}");
                }
                Err(Error::Damaged { .. }) => in_error += 1,
                Err(other) => panic!("{what}: {other:?}"),
            }
        }
        in_error
    }
}
