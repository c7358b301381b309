//! A sample store to damage, and checks of its content.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use haul_file_store::{Damage, Error, RecoveryReport, Store};
use haul_testing::eventually;
use tempfile::TempDir;

use crate::get_many::agrees_with_get;
use crate::{
    BUCKET, Dump, content, disk_dir, dump, file_names, list, put, random_bytes, try_get,
    without_checkpoints,
};

/// Returns a copy of the files of a store. Repeats the copy if compaction changed the files in the
/// meantime, because a killed process leaves the files of one moment.
pub(crate) fn copy_of(dir: &Path) -> TempDir {
    loop {
        let before = files_of(dir);
        let copy = disk_dir();
        for part in ["volumes", "objects", "index"] {
            fs::create_dir(copy.path().join(part)).unwrap();
        }
        for (path, _) in &before {
            let to = copy.path().join(path.strip_prefix(dir).unwrap());
            // A file that was removed in the meantime is detected below.
            fs::copy(path, to).ok();
        }
        if files_of(dir) == before {
            return copy;
        }
    }
}

/// Returns the files of a store with their lengths and modification times.
fn files_of(dir: &Path) -> Vec<(PathBuf, Option<(u64, SystemTime)>)> {
    let mut files = Vec::new();
    for part in ["", "volumes", "objects", "index"] {
        for name in file_names(&dir.join(part)) {
            let path = dir.join(part).join(name);
            if !path.is_dir() {
                let status = fs::metadata(&path).ok();
                let status = status.map(|status| (status.len(), status.modified().unwrap()));
                files.push((path, status));
            }
        }
    }
    files
}

/// Returns the lengths of the small objects of a [`Sample`].
pub(crate) fn small_bytes(n: u64) -> usize {
    50_000 + 3 * usize::try_from(n).unwrap()
}

/// A closed store with a sealed, indexed volume, the newest volume, and big objects.
pub(crate) struct Sample {
    pub(crate) dir: TempDir,
    pub(crate) all: Dump,
    /// The volume of each small object, and the offset of its bytes in it.
    pub(crate) places: BTreeMap<String, (String, u64)>,
}

impl Sample {
    pub(crate) fn new() -> Self {
        let dir = disk_dir();
        let (store, _) = Store::open(dir.path(), without_checkpoints()).unwrap();
        store.create_bucket(BUCKET).unwrap();
        for n in 0..100 {
            put(&store, &format!("key {n:02}"), &random_bytes(n, small_bytes(n)));
        }
        for n in 0..3 {
            put(&store, &format!("big {n}"), &random_bytes(1000 + n, 300_000));
        }
        eventually("the index is written", || dir.path().join("volumes/0000000001.index").exists());
        let all = dump(&store);
        store.close().unwrap();
        let places = places(dir.path(), &all);
        Self { dir, all, places }
    }

    pub(crate) fn copy(&self) -> TempDir {
        copy_of(self.dir.path())
    }

    pub(crate) fn place(&self, key: &str) -> (String, u64) {
        self.places[key].clone()
    }

    /// Checks that exactly the objects in `lost` are damaged, and that `get` and `verify` report
    /// that. Returns the damage that `verify` found.
    pub(crate) fn check(&self, store: &Store, lost: &[&str]) -> Vec<Damage> {
        let mut damaged = BTreeSet::new();
        for (key, (bytes, _)) in &self.all[BUCKET] {
            let cached = store.get_cached(BUCKET, key).unwrap();
            if let Some(cached) = cached.filter(haul_file_store::Object::is_in_memory) {
                assert!(!lost.contains(&key.as_str()), "{key} is intact");
                assert!(content(&cached).unwrap() == *bytes, "wrong bytes of {key}");
            }
            match try_get(store, key) {
                Ok(found) => {
                    assert!(found == *bytes, "wrong bytes of {key}");
                    assert!(!lost.contains(&key.as_str()), "{key} is intact");
                }
                Err(Error::Damaged { file, .. }) => {
                    assert!(lost.contains(&key.as_str()), "{key} is damaged");
                    assert!(file.starts_with(store.dir()));
                    damaged.insert(key.clone());
                }
                Err(other) => panic!("{key}: {other:?}"),
            }
        }
        let keys: Vec<&str> = self.all[BUCKET].keys().map(String::as_str).collect();
        agrees_with_get(store, BUCKET, &keys);
        let listed = list(store, BUCKET);
        assert!(listed.iter().all(|info| self.all[BUCKET].contains_key(&info.key)));
        let verified = store.verify(&mut |_, _| {}).unwrap();
        assert_eq!(verified.objects, listed.len() as u64);
        // Damage in volumes may belong to no object.
        let (found, unnamed): (Vec<_>, Vec<_>) =
            verified.damage.into_iter().partition(|damage| damage.key.is_some());
        let keys: BTreeSet<String> = found.iter().filter_map(|damage| damage.key.clone()).collect();
        assert!(
            keys.is_superset(&damaged),
            "`verify` finds all damage that `get` finds: {keys:?} {damaged:?}"
        );
        assert!(unnamed.is_empty() || !lost.is_empty(), "{unnamed:?}");
        found
    }
}

/// Finds the bytes of the small objects, which were stored in the order of their keys.
pub(crate) fn places(dir: &Path, all: &Dump) -> BTreeMap<String, (String, u64)> {
    let mut places = BTreeMap::new();
    let mut keys = (0..100).map(|n| format!("key {n:02}")).peekable();
    for name in ["volumes/0000000001.segment", "volumes/0000000002.segment"] {
        let volume = fs::read(dir.join(name)).unwrap();
        let mut from = 0;
        while let Some(key) = keys.peek() {
            let bytes = &all[BUCKET][key].0;
            // The next object follows within a few KiB, or is in the next volume.
            let soon = &volume[from..volume.len().min(from + 8192)];
            let Some(at) = soon.windows(32).position(|window| *window == bytes[..32]) else {
                break;
            };
            places.insert(key.clone(), (name.to_owned(), (from + at) as u64));
            from += at + bytes.len();
            keys.next();
        }
    }
    assert_eq!(places.len(), 100);
    places
}

pub(crate) fn damages(recovered: &RecoveryReport) -> Vec<(PathBuf, u64)> {
    recovered.damage.iter().map(|damage| (damage.file.clone(), damage.offset)).collect()
}
