//! Reopening a store in any state.

use std::fs;
use std::path::Path;

use haul_file_store::{Error, Options, RecoveryReport, Store};
use haul_testing::{Random, eventually};
use tempfile::TempDir;

use crate::sample::Sample;
use crate::{
    BUCKET, big_files, disk_dir, dump, file_names, flip, put, random_bytes, small, try_get,
    without_checkpoints,
};

/// Opens a store whose index is not checkpointed, so that the indexes of volumes are needed.
fn reopen(dir: &Path) -> (Store, RecoveryReport) {
    Store::open(dir, without_checkpoints()).unwrap()
}

fn new_store() -> (TempDir, Store) {
    let dir = disk_dir();
    let (store, _) = reopen(dir.path());
    store.create_bucket(BUCKET).unwrap();
    (dir, store)
}

#[test]
fn indexes_agree_with_their_volumes() {
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
            eventually("the index is written", || path.exists());
        }
    }
}

#[test]
fn unfinished_index_is_removed() {
    let sample = Sample::new();
    let path = sample.dir.path().join("volumes/0000000001.index.new");
    fs::write(&path, b"unfinished").unwrap();
    let (store, _) = reopen(sample.dir.path());
    assert!(dump(&store) == sample.all && !path.exists());
}

#[test]
fn orphaned_files_are_removed_and_foreign_files_are_not() {
    let sample = Sample::new();
    let objects = sample.dir.path().join("objects");
    let before = file_names(&objects);
    let orphan = "0123456789abcdef0123456789abcdef";
    fs::write(objects.join(orphan), b"orphan").unwrap();
    fs::write(objects.join(format!("{orphan}.new")), b"unfinished").unwrap();
    fs::write(objects.join("report.new"), b"foreign").unwrap();
    let (store, recovered) = reopen(sample.dir.path());
    assert_eq!(recovered.orphans_removed, 1);
    assert!(dump(&store) == sample.all);
    fs::remove_file(objects.join("report.new")).unwrap();
    assert_eq!(file_names(&objects), before);
}

#[test]
fn foreign_directory_is_refused_and_unchanged() {
    let md5 = "d41d8cd98f00b204e9800998ecf8427e";
    for foreign in [
        "notes.txt".to_owned(),
        "volumes/notes.txt".to_owned(),
        format!("objects/{md5}"),
        "objects/something.new".to_owned(),
        "MANIFEST".to_owned(),
        "MANIFEST.copy".to_owned(),
        "STORE".to_owned(),
    ] {
        let dir = disk_dir();
        let path = dir.path().join(&foreign);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, b"haul file store, version 5\n").unwrap();
        let before = file_names(dir.path());
        let refused = Store::open(dir.path(), small()).unwrap_err();
        assert!(matches!(refused, Error::NotAStore { .. }), "{foreign}: {refused:?}");
        if foreign == "STORE" {
            let why = "its STORE file contains \"haul file store, version 5\", \
                       not \"haul file store, version 1\"";
            assert!(refused.to_string().contains(why), "{refused}");
        }
        assert_eq!(file_names(dir.path()), before);
        assert_eq!(fs::read(&path).unwrap(), b"haul file store, version 5\n");
    }
    let file = disk_dir();
    fs::write(file.path().join("file"), b"").unwrap();
    assert!(Store::open(&file.path().join("file"), small()).is_err(), "a file");
}

#[test]
fn store_without_volumes_is_refused_and_keeps_its_big_objects() {
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
fn compacted_volume_is_not_missing() {
    let sample = Sample::new();
    let (store, _) = reopen(sample.dir.path());
    for n in 0..100 {
        assert!(store.delete(BUCKET, &format!("key {n:02}")).unwrap());
    }
    store.compact().unwrap();
    drop(store);
    let volumes = sample.dir.path().join("volumes");
    assert!(!file_names(&volumes).iter().any(|name| name == "0000000001.segment"));
    assert!(reopen(sample.dir.path()).1.damage.is_empty());
}

#[test]
fn store_is_open_once() {
    let (dir, store) = new_store();
    let options = Options { holder: "another process".to_owned(), ..small() };
    let refused = Store::open(dir.path(), options).unwrap_err();
    let Error::InUse { dir: named, holder } = refused else { panic!("{refused:?}") };
    assert_eq!((named.as_path(), holder), (dir.path(), small().holder));
    put(&store, "key", b"stored after the refusal");
    drop(store);
    assert_eq!(try_get(&reopen(dir.path()).0, "key").unwrap(), b"stored after the refusal");
}

#[test]
fn store_of_100_000_objects_opens_quickly() {
    let dir = disk_dir();
    let (store, _) =
        Store::open(dir.path(), Options { volume_bytes: 8 << 20, ..without_checkpoints() })
            .unwrap();
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
    eventually("the index is written", || {
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

/// A tombstone that is applied before the object it deletes has no effect, so an older volume must
/// be applied first, even if it alone has to be read.
#[test]
fn deletion_stays_when_an_older_volume_has_lost_its_index() {
    let (dir, store) = new_store();
    let deleted: Vec<String> = (0..20).map(|n| format!("deleted {n}")).collect();
    for key in &deleted {
        put(&store, key, &random_bytes(1, 1000));
    }
    // Both volumes have enough live bytes that neither is compacted.
    let fill = |name: &str, volumes| {
        for n in 0.. {
            if store.stats().volumes > volumes {
                return;
            }
            put(&store, &format!("{name} {n}"), &random_bytes(n, 60_000));
        }
    };
    fill("first", 1);
    deleted.iter().for_each(|key| assert!(store.delete(BUCKET, key).unwrap()));
    fill("second", 2);
    let index = |volume: u32| dir.path().join(format!("volumes/{volume:010}.index"));
    store.close().unwrap();
    // Opening the store rewrites missing indexes.
    let (store, _) = reopen(dir.path());
    eventually("the index is written", || index(1).exists() && index(2).exists());
    store.close().unwrap();
    fs::remove_file(index(1)).unwrap();
    let (store, _) = reopen(dir.path());
    for key in &deleted {
        assert!(try_get(&store, key).is_err(), "{key} came back");
    }
}

#[test]
fn checkpoint_of_shorter_or_other_volumes_is_not_used() {
    let big_object_bytes = 4 << 20;
    let long = || Options { big_object_bytes, volume_bytes: 16 << 20, ..small() };
    let create = |options: Options, key: &str| {
        let dir = disk_dir();
        let (store, _) = Store::open(dir.path(), options).unwrap();
        store.create_bucket(BUCKET).unwrap();
        put(&store, key, b"content");
        store.write_checkpoint().unwrap();
        store.close().unwrap();
        dir
    };
    let (short_store, long_store) = (create(small(), "short"), create(long(), "long"));
    for (from, to, options, key, why) in [
        (&short_store, &long_store, long(), "long", "has a shorter volume 1"),
        (&create(long(), "other"), &short_store, small(), "short", "belongs to other volumes"),
    ] {
        fs::remove_dir_all(to.path().join("index")).unwrap();
        fs::create_dir(to.path().join("index")).unwrap();
        for file in fs::read_dir(from.path().join("index")).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), to.path().join("index").join(file.file_name())).unwrap();
        }
        let (store, recovered) = Store::open(to.path(), options).unwrap();
        let rebuilt = recovered.index_rebuilt.unwrap();
        assert!(rebuilt.contains(why), "{rebuilt}");
        assert_eq!(dump(&store).len(), 1);
        assert!(try_get(&store, key).is_ok());
    }
}
