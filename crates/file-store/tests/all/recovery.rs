//! Opening a store again, whatever happened to it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use haul_file_store::{Damage, Error, Options, Recovered, Store};
use haul_test_disk::Random;
use tempfile::TempDir;

use crate::{
    BUCKET, Dump, big_files, disk_dir, dump, file_names, flip, list, new_store, put, put_part,
    random_bytes, reopen, small, try_get,
};

/// The files of a store as they are now.
pub(crate) fn copy_of(dir: &Path) -> TempDir {
    let copy = disk_dir();
    for part in ["", "volumes", "objects"] {
        fs::create_dir_all(copy.path().join(part)).unwrap();
        for name in file_names(&dir.join(part)) {
            let path = dir.join(part).join(&name);
            if path.is_file() {
                fs::copy(path, copy.path().join(part).join(name)).unwrap();
            }
        }
    }
    copy
}

/// How long the small objects of a [`Sample`] are.
fn small_bytes(n: u64) -> usize {
    50_000 + 3 * usize::try_from(n).unwrap()
}

/// A closed store with a sealed volume that has its index, one being written, and big objects.
struct Sample {
    dir: TempDir,
    all: Dump,
    /// In which volume and where in it the bytes of a small object begin.
    places: BTreeMap<String, (String, u64)>,
}

impl Sample {
    fn new() -> Self {
        let (dir, store) = new_store();
        for n in 0..100 {
            put(&store, &format!("key {n:02}"), &random_bytes(n, small_bytes(n)));
        }
        for n in 0..3 {
            put(&store, &format!("big {n}"), &random_bytes(1000 + n, 300_000));
        }
        wait_for(|| dir.path().join("volumes/0000000001.index").exists());
        let all = dump(&store);
        store.close().unwrap();
        let places = places(dir.path(), &all);
        Self { dir, all, places }
    }

    fn copy(&self) -> TempDir {
        copy_of(self.dir.path())
    }

    fn place(&self, key: &str) -> (String, u64) {
        self.places[key].clone()
    }

    /// Checks that of all objects only those in `lost` are not what they were, and how the store
    /// tells so. Returns the damage that verifying found.
    fn check(&self, store: &Store, recovered: &Recovered, lost: &[&str]) -> Vec<Damage> {
        let mut told = BTreeSet::new();
        for (key, (bytes, _)) in &self.all[BUCKET] {
            match try_get(store, key) {
                Ok(found) => {
                    assert!(found == *bytes, "wrong bytes of {key}");
                    assert!(!lost.contains(&key.as_str()), "{key} is whole");
                }
                Err(Error::Damaged { file, .. }) => {
                    assert!(lost.contains(&key.as_str()), "{key} is damaged");
                    assert!(file.starts_with(store.dir()));
                    told.insert(key.clone());
                }
                Err(Error::NoSuchKey { .. }) => {
                    assert!(lost.contains(&key.as_str()), "{key} is gone");
                    assert!(!recovered.damage.is_empty(), "{key} is gone, and nobody said why");
                }
                Err(other) => panic!("{key}: {other:?}"),
            }
        }
        let listed = list(store, BUCKET);
        assert!(listed.iter().all(|info| self.all[BUCKET].contains_key(&info.key)));
        let verified = store.verify(&mut |_, _| {}).unwrap();
        assert_eq!(verified.objects, listed.len() as u64);
        // Volumes tell of what cannot be any object's, too.
        let (found, nobodys): (Vec<_>, Vec<_>) =
            verified.damage.into_iter().partition(|damage| damage.key.is_some());
        let keys: BTreeSet<String> = found.iter().filter_map(|damage| damage.key.clone()).collect();
        assert_eq!(keys, told, "verifying finds what reading does");
        assert!(nobodys.is_empty() || !lost.is_empty(), "{nobodys:?}");
        found
    }
}

/// Finds the bytes of the small objects, which were put in the order of their keys.
fn places(dir: &Path, all: &Dump) -> BTreeMap<String, (String, u64)> {
    let mut places = BTreeMap::new();
    let mut keys = (0..100).map(|n| format!("key {n:02}")).peekable();
    for name in ["volumes/0000000001.segment", "volumes/0000000002.segment"] {
        let volume = fs::read(dir.join(name)).unwrap();
        let mut from = 0;
        while let Some(key) = keys.peek() {
            let bytes = &all[BUCKET][key].0;
            // The next one begins soon behind the one before, or is in the next volume.
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

fn wait_for(mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < Duration::from_secs(60), "it never comes");
        std::thread::yield_now();
    }
}

fn damages(recovered: &Recovered) -> Vec<(PathBuf, u64)> {
    recovered.damage.iter().map(|damage| (damage.file.clone(), damage.offset)).collect()
}

#[test]
fn indexes_say_what_the_volumes_say() {
    let sample = Sample::new();
    let index = "volumes/0000000001.index";
    let bytes = fs::metadata(sample.dir.path().join(index)).unwrap().len();
    let mut random = Random(11);
    for round in 0..8 {
        let copy = sample.copy();
        let path = copy.path().join(index);
        match round {
            0 => {}
            1 => fs::remove_file(&path).unwrap(),
            2 => fs::write(&path, b"").unwrap(),
            3 => fs::File::options().write(true).open(&path).unwrap().set_len(bytes / 2).unwrap(),
            _ => flip(&path, random.below(bytes)),
        }
        let (store, recovered) = reopen(copy.path());
        assert!(recovered.damage.is_empty() && !recovered.after_crash);
        assert!(dump(&store) == sample.all);
        if round == 1 {
            wait_for(|| path.exists());
        }
    }
}

#[test]
fn an_index_that_was_not_finished_is_removed() {
    let sample = Sample::new();
    let path = sample.dir.path().join("volumes/0000000001.index.new");
    fs::write(&path, b"unfinished").unwrap();
    let (store, _) = reopen(sample.dir.path());
    assert!(dump(&store) == sample.all && !path.exists());
}

#[test]
fn a_volume_that_was_taken_away_is_told_until_it_is_back() {
    let sample = Sample::new();
    let path = sample.dir.path().join("volumes/0000000001.segment");
    let elsewhere = sample.dir.path().join("volumes/elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    for _ in 0..2 {
        let (store, recovered) = reopen(sample.dir.path());
        assert_eq!((damages(&recovered), recovered.orphans_removed), (vec![(path.clone(), 0)], 0));
        assert!(store.delete(BUCKET, "key 99").is_ok());
        store.compact().unwrap();
    }
    fs::rename(&elsewhere, &path).unwrap();
    let (store, recovered) = reopen(sample.dir.path());
    assert!(recovered.damage.is_empty());
    let mut expected = sample.all.clone();
    expected.get_mut(BUCKET).unwrap().remove("key 99");
    assert!(dump(&store) == expected);
}

#[test]
fn a_flipped_bit_in_an_object_harms_that_object_alone() {
    let sample = Sample::new();
    for key in ["key 00", "key 40", "key 90", "key 99"] {
        let (volume, at) = sample.place(key);
        let is_indexed = volume.contains("0001");
        // The data, the key in the head, the checksum of the head, the header of the record.
        for (offset, has_head) in
            [(at, true), (at + 49_000, true), (at - 1, false), (at - 80, false), (at - 110, false)]
        {
            let copy = sample.copy();
            let path = copy.path().join(&volume);
            flip(&path, offset);
            let (store, recovered) = reopen(copy.path());
            let found = sample.check(&store, &recovered, &[key]);
            let near = |file: &Path, told: u64| {
                assert_eq!(file, path);
                assert!(told <= offset && offset < told + 60_000, "{told} for {offset}");
            };
            if is_indexed || has_head {
                assert_eq!(found.len(), 1);
                near(&found[0].file, found[0].offset);
                let Err(Error::Damaged { file, offset, .. }) = try_get(&store, key) else {
                    panic!("{key} is whole");
                };
                near(&file, offset);
            }
            assert_eq!(recovered.damage.len(), usize::from(!is_indexed));
            for (file, offset) in damages(&recovered) {
                near(&file, offset);
            }
            // It can be overwritten and deleted.
            put(&store, key, b"again");
            assert_eq!(try_get(&store, key).unwrap(), b"again");
            drop(store);
            let (store, _) = reopen(copy.path());
            assert_eq!(try_get(&store, key).unwrap(), b"again");
        }
    }
}

#[test]
fn a_flipped_bit_in_a_big_file_harms_that_object_alone() {
    let sample = Sample::new();
    for (n, name) in big_files(sample.dir.path()).iter().enumerate() {
        let bytes = fs::metadata(sample.dir.path().join("objects").join(name)).unwrap().len();
        // Each block, the table, the footer.
        for offset in [0, 131_072, 299_999, bytes - 8192, bytes - 4096, bytes - 4096 + 47] {
            let copy = sample.copy();
            let path = copy.path().join("objects").join(name);
            flip(&path, offset);
            let (store, recovered) = reopen(copy.path());
            assert!(recovered.damage.is_empty());
            let key = (0..3).map(|n| format!("big {n}")).find(|key| try_get(&store, key).is_err());
            let found = sample.check(&store, &recovered, &[&key.unwrap()]);
            assert_eq!(found[0].file, path, "{n}");
            let block = offset - offset % 131_072;
            assert!([block, bytes - 8192].contains(&found[0].offset), "{}", found[0].offset);
        }
        // The padding of the last block is nobody's.
        let copy = sample.copy();
        flip(&copy.path().join("objects").join(name), 300_001);
        let (store, recovered) = reopen(copy.path());
        assert!(sample.check(&store, &recovered, &[]).is_empty());
    }
}

#[test]
fn any_flipped_bit_harms_one_object_at_most() {
    let sample = Sample::new();
    let seed = crate::script::seed();
    let mut random = Random(seed);
    for round in 0..60 {
        let copy = sample.copy();
        let dir = copy.path().join(["volumes", "objects"][usize::from(round % 3 == 0)]);
        let names = file_names(&dir);
        let name = &names[usize::try_from(random.below(names.len() as u64)).unwrap()];
        let bytes = fs::metadata(dir.join(name)).unwrap().len();
        let offset = random.below(bytes);
        flip(&dir.join(name), offset);
        println!("SEED={seed}, round {round}: {name} at {offset}");
        let (store, recovered) = reopen(copy.path());
        let keys = sample.all[BUCKET].keys();
        let lost: Vec<&str> =
            keys.map(String::as_str).filter(|key| try_get(&store, key).is_err()).collect();
        assert!(lost.len() <= 1 && recovered.damage.len() <= 1, "{lost:?} {recovered:?}");
        sample.check(&store, &recovered, &lost);
    }
}

#[test]
fn a_cut_file_harms_what_was_in_its_end() {
    let sample = Sample::new();
    let cut = |copy: &TempDir, name: &str, bytes: u64| {
        let file = fs::File::options().write(true).open(copy.path().join(name)).unwrap();
        file.set_len(bytes).unwrap();
    };
    for (key, removes_index) in [("key 30", false), ("key 30", true), ("key 95", false)] {
        let (volume, at) = sample.place(key);
        for bytes in [at, at + 1000, at + 777] {
            let copy = sample.copy();
            cut(&copy, &volume, bytes);
            if removes_index {
                fs::remove_file(copy.path().join("volumes/0000000001.index")).unwrap();
            }
            let (store, recovered) = reopen(copy.path());
            let behind = |other: &str| {
                let (other_volume, other_at) = sample.place(other);
                other_volume == volume && other_at >= at
            };
            let keys = sample.all[BUCKET].keys().filter(|key| key.starts_with("key"));
            let lost: Vec<&str> = keys.map(String::as_str).filter(|key| behind(key)).collect();
            // The needles of big objects are at the end of the second volume.
            let bigs = ["big 0", "big 1", "big 2"];
            let lost = if key == "key 95" { [&lost[..], &bigs].concat() } else { lost };
            sample.check(&store, &recovered, &lost);
            assert_eq!(big_files(copy.path()).len(), 3, "nobody knows that they are orphans");
            put(&store, "key", b"it goes on");
            drop(store);
            let (store, _) = reopen(copy.path());
            assert_eq!(try_get(&store, "key").unwrap(), b"it goes on");
        }
    }
    let name = format!("objects/{}", big_files(sample.dir.path())[1]);
    for bytes in [0, 1, 5000, 131_072, 299_000, 308_000] {
        let copy = sample.copy();
        cut(&copy, &name, bytes);
        let (store, recovered) = reopen(copy.path());
        let key = (0..3).map(|n| format!("big {n}")).find(|key| try_get(&store, key).is_err());
        let found = sample.check(&store, &recovered, &[&key.unwrap()]);
        assert_eq!(found.len(), 1, "cut to {bytes}");
    }
}

#[test]
fn a_missing_big_file_is_damage() {
    let sample = Sample::new();
    let path = sample.dir.path().join("objects").join(&big_files(sample.dir.path())[0]);
    fs::remove_file(&path).unwrap();
    let (store, recovered) = reopen(sample.dir.path());
    let key = (0..3).map(|n| format!("big {n}")).find(|key| try_get(&store, key).is_err()).unwrap();
    let found = sample.check(&store, &recovered, &[&key]);
    assert_eq!((&found[0].file, found[0].offset), (&path, 0));
    assert!(found[0].what.contains("missing"));
    assert!(store.delete(BUCKET, &key).unwrap());
}

#[test]
fn files_nobody_refers_to_are_removed_and_those_of_others_are_not() {
    let sample = Sample::new();
    let objects = sample.dir.path().join("objects");
    let before = file_names(&objects);
    let orphan = "0123456789abcdef0123456789abcdef";
    fs::write(objects.join(orphan), b"orphan").unwrap();
    fs::write(objects.join(format!("{orphan}.new")), b"unfinished").unwrap();
    fs::write(objects.join("report.new"), b"somebody's").unwrap();
    let (store, recovered) = reopen(sample.dir.path());
    assert_eq!(recovered.orphans_removed, 1);
    assert!(dump(&store) == sample.all);
    fs::remove_file(objects.join("report.new")).unwrap();
    assert_eq!(file_names(&objects), before);
}

#[test]
fn with_damage_no_big_file_is_an_orphan() {
    let sample = Sample::new();
    // The needle of the first big object is the first thing behind the last small one.
    let (volume, at) = sample.place("key 99");
    let header = (at + small_bytes(99) as u64).next_multiple_of(8);
    let path = sample.dir.path().join(volume);
    flip(&path, header);
    let (store, recovered) = reopen(sample.dir.path());
    assert_eq!((recovered.damage.len(), recovered.orphans_removed), (1, 0));
    sample.check(&store, &recovered, &["big 0"]);
    store.delete(BUCKET, "key 98").unwrap();
    store.compact().unwrap();
    drop(store);
    // Repaired from elsewhere, it is all there again.
    flip(&path, header);
    let (store, recovered) = reopen(sample.dir.path());
    assert!(recovered.damage.is_empty());
    assert_eq!(big_files(sample.dir.path()).len(), 3);
    assert!(try_get(&store, "big 0").unwrap() == sample.all[BUCKET]["big 0"].0);
}

#[test]
fn a_directory_of_somebody_else_is_refused_and_untouched() {
    let md5 = "d41d8cd98f00b204e9800998ecf8427e";
    for foreign in [
        "notes.txt".to_owned(),
        "volumes/notes.txt".to_owned(),
        format!("objects/{md5}"),
        "objects/something.new".to_owned(),
        "STORE".to_owned(),
    ] {
        let dir = disk_dir();
        let path = dir.path().join(&foreign);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, b"haul file store, version 2\n").unwrap();
        let before = file_names(dir.path());
        let refused = Store::open(dir.path(), small()).unwrap_err();
        assert!(matches!(refused, Error::NotAStore { .. }), "{foreign}: {refused:?}");
        assert_eq!(file_names(dir.path()), before);
        assert_eq!(fs::read(&path).unwrap(), b"haul file store, version 2\n");
    }
    let file = disk_dir();
    fs::write(file.path().join("file"), b"").unwrap();
    assert!(Store::open(&file.path().join("file"), small()).is_err(), "a file");
}

#[test]
fn a_store_whose_volumes_are_gone_is_refused_with_its_big_objects_untouched() {
    let sample = Sample::new();
    let volumes = sample.dir.path().join("volumes");
    fs::rename(&volumes, sample.dir.path().join("elsewhere")).unwrap();
    fs::create_dir(&volumes).unwrap();
    let refused = Store::open(sample.dir.path(), small());
    assert!(matches!(refused, Err(Error::NotAStore { .. })));
    assert_eq!(big_files(sample.dir.path()).len(), 3);
    fs::remove_dir(&volumes).unwrap();
    fs::rename(sample.dir.path().join("elsewhere"), &volumes).unwrap();
    assert!(dump(&reopen(sample.dir.path()).0) == sample.all);
}

#[test]
fn a_compacted_volume_is_not_missing() {
    let sample = Sample::new();
    let (store, _) = reopen(sample.dir.path());
    for n in 0..100 {
        assert!(store.delete(BUCKET, &format!("key {n:02}")).unwrap());
    }
    store.compact().unwrap();
    drop(store);
    let volumes = sample.dir.path().join("volumes");
    assert!(!file_names(&volumes).iter().any(|name| name.starts_with("0000000001")));
    assert!(reopen(sample.dir.path()).1.damage.is_empty());
}

#[test]
fn a_store_is_open_once() {
    let (dir, store) = new_store();
    let options = Options { holder: "somebody else".to_owned(), ..small() };
    let refused = Store::open(dir.path(), options).unwrap_err();
    let Error::Locked { dir: named, holder } = refused else { panic!("{refused:?}") };
    assert_eq!((named.as_path(), holder), (dir.path(), small().holder));
    put(&store, "key", b"it harms nobody");
    drop(store);
    assert_eq!(try_get(&reopen(dir.path()).0, "key").unwrap(), b"it harms nobody");
}

#[test]
fn damage_in_an_upload_does_not_lose_its_parts_for_good() {
    let (dir, store) = new_store();
    let upload = store.start_upload(BUCKET, "key", &haul_file_store::Attributes::new()).unwrap();
    put_part(&store, "key", &upload, 1, b"part");
    store.close().unwrap();
    let path = dir.path().join("volumes/0000000001.segment");
    let volume = fs::read(&path).unwrap();
    // The identifier of the upload stands first in the needle that starts it.
    let id = u128::from_str_radix(&upload, 16).unwrap().to_le_bytes();
    let at = volume.windows(16).position(|window| window == id).unwrap() as u64;
    flip(&path, at);
    let (store, recovered) = reopen(dir.path());
    assert_eq!((recovered.damage.len(), store.stats().uploads), (1, 0));
    drop(store);
    flip(&path, at);
    let (store, recovered) = reopen(dir.path());
    assert_eq!((recovered.damage.len(), store.stats().uploads), (0, 1));
    assert_eq!(store.parts(BUCKET, "key", &upload).unwrap().len(), 1);
}

#[test]
fn a_hundred_thousand_objects_open_in_a_moment() {
    let dir = disk_dir();
    let (store, _) = Store::open(dir.path(), Options { volume_bytes: 8 << 20, ..small() }).unwrap();
    store.create_bucket(BUCKET).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..50 {
            let store = &store;
            scope.spawn(move || {
                for n in 0..2000 {
                    put(store, &format!("{thread}/{n}"), b"some small content of an object");
                }
            });
        }
    });
    wait_for(|| {
        let names = file_names(&dir.path().join("volumes"));
        let count = |end: &str| names.iter().filter(|name| name.ends_with(end)).count();
        count(".index") as u64 + 1 >= store.stats().volumes
    });
    store.close().unwrap();
    for indexed in [true, false] {
        if !indexed {
            for name in file_names(&dir.path().join("volumes")) {
                if name.ends_with(".index") {
                    fs::remove_file(dir.path().join("volumes").join(name)).unwrap();
                }
            }
        }
        let (store, recovered) = reopen(dir.path());
        assert_eq!((recovered.objects, recovered.damage.len()), (100_000, 0));
        println!("100,000 objects, indexes {indexed}: {:.3} s", recovered.seconds);
        assert!(recovered.seconds < 10.0);
        assert_eq!(try_get(&store, "7/77").unwrap(), b"some small content of an object");
        store.close().unwrap();
    }
}
