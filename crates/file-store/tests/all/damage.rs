//! The effect of damage, and its report.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use haul_file_store::Error;
use haul_testing::Random;
use tempfile::TempDir;

use crate::sample::{Sample, damages, small_bytes};
use crate::{
    BIG, BUCKET, big_files, dump, file_names, flip, get, new_store, put, put_part, random_bytes,
    reopen, try_get,
};

#[test]
fn missing_volume_is_reported_until_it_is_restored() {
    let sample = Sample::new();
    let path = sample.dir.path().join("volumes/0000000001.segment");
    let elsewhere = sample.dir.path().join("volumes/elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    for _ in 0..2 {
        let (store, recovered) = reopen(sample.dir.path());
        assert_eq!(
            (damages(&recovered)[0].clone(), recovered.orphans_removed),
            ((path.clone(), 0), 0)
        );
        // The index of the volume names its objects, and no other key is in doubt.
        let lost: BTreeSet<&str> =
            recovered.damage.iter().filter_map(|damage| damage.key.as_deref()).collect();
        assert_eq!(lost.first(), Some(&"key 00"));
        for key in sample.all[BUCKET].keys().filter(|key| *key != "key 99") {
            let is_damaged = matches!(try_get(&store, key), Err(Error::Damaged { .. }));
            assert_eq!(is_damaged, lost.contains(&key.as_str()), "{key}");
        }
        assert!(recovered.hidden.is_empty() && !lost.contains("key 99"));
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

/// Changes the length in the head of a needle, and sets the checksums of the needle and its record.
/// `from` and `to` are its encodings, and the bytes between it and the name of the bucket.
fn forge_length(volume: &Path, key: &str, from: &[u8], to: &[u8]) {
    let mut file = fs::read(volume).unwrap();
    let name = [from, BUCKET.as_bytes(), key.as_bytes()].concat();
    let at = file.windows(name.len()).position(|bytes| bytes == name).unwrap();
    file[at..at + to.len()].copy_from_slice(to);
    // Before the length, a head has 33 bytes, and a record has a header of 32 bytes.
    let (head, record) = (at - 33, at - 65);
    let payload_bytes = u32::from_le_bytes(*file[record + 4..].first_chunk().unwrap()) as usize;
    let end = head + payload_bytes;
    let has_files = from.len() > 1;
    let head_end = at + name.len() + if has_files { 24 } else { 0 };
    let checksum = haul_crc::crc32c(&file[head + 4..head_end]);
    file[head..head + 4].copy_from_slice(&checksum.to_le_bytes());
    let checksum = haul_crc::crc32c(&file[head..end]);
    file[record + 28..head].copy_from_slice(&checksum.to_le_bytes());
    let salt = haul_crc::crc32c(&file[24..32]);
    let checksum = haul_crc::crc32c_append(salt, &file[record + 4..head]);
    file[record..record + 4].copy_from_slice(&checksum.to_le_bytes());
    let volume = fs::OpenOptions::new().write(true).open(volume).unwrap();
    volume.write_all_at(&file[record..end], record as u64).unwrap();
}

#[test]
fn object_with_a_forged_length_is_damaged() {
    // In the big object, the number of its files follows the length.
    let big_bytes = [[0x80, 0x80, 4, 1], [0x81, 0x80, 4, 1]];
    for (key, bytes, [from, to]) in [
        ("short", 5, [&[5][..], &[6]]),
        ("long", 5, [&[5], &[100]]),
        ("big", BIG, [&big_bytes[0], &big_bytes[1]]),
    ] {
        let (dir, store) = new_store();
        put(&store, key, &random_bytes(1, bytes));
        put(&store, "intact", b"intact");
        forge_length(&dir.path().join("volumes/0000000001.segment"), key, from, to);
        let is_damaged = |error: &Error| matches!(error, Error::Damaged { .. });
        assert!(store.get(BUCKET, key).is_err_and(|error| is_damaged(&error)), "{key}");
        assert!(store.open_object(BUCKET, key).is_err_and(|error| is_damaged(&error)), "{key}");
        for (_, found) in store.get_many(BUCKET, &[key]) {
            assert!(found.is_err_and(|error| is_damaged(&error)), "{key}");
        }
        assert_eq!(get(&store, "intact"), b"intact");
    }
}

#[test]
fn flipped_bit_in_an_object_affects_only_that_object() {
    let sample = Sample::new();
    for key in ["key 00", "key 40", "key 90", "key 99"] {
        let (volume, at) = sample.place(key);
        let is_indexed = volume.contains("0001");
        // The data, the key in the head, the checksum of the head, the header of the record.
        for (offset, has_head) in
            [(at, true), (at + 49_000, true), (at - 1, false), (at - 47, false), (at - 70, false)]
        {
            let copy = sample.copy();
            let path = copy.path().join(&volume);
            flip(&path, offset);
            let (store, recovered) = reopen(copy.path());
            let found = sample.check(&store, &[key]);
            let near = |file: &Path, reported: u64| {
                assert_eq!(file, path);
                assert!(
                    reported <= offset && offset < reported + 60_000,
                    "{reported} for {offset}"
                );
            };
            if is_indexed || has_head {
                assert_eq!(found.len(), 1);
                near(&found[0].file, found[0].offset);
                let Err(Error::Damaged { file, offset, .. }) = try_get(&store, key) else {
                    panic!("{key} is intact");
                };
                near(&file, offset);
            }
            assert_eq!(recovered.damage.len(), usize::from(!is_indexed));
            for (file, offset) in damages(&recovered) {
                near(&file, offset);
            }
            // The object can be overwritten and deleted.
            put(&store, key, b"again");
            assert_eq!(try_get(&store, key).unwrap(), b"again");
            drop(store);
            let (store, _) = reopen(copy.path());
            assert_eq!(try_get(&store, key).unwrap(), b"again");
        }
    }
}

#[test]
fn flipped_bit_in_a_big_file_affects_only_that_object() {
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
            let found = sample.check(&store, &[&key.unwrap()]);
            assert_eq!(found[0].file, path, "{n}");
            let block = offset - offset % 131_072;
            assert!([block, bytes - 8192].contains(&found[0].offset), "{}", found[0].offset);
        }
        // The padding of the last block belongs to no object.
        let copy = sample.copy();
        flip(&copy.path().join("objects").join(name), 300_001);
        let (store, _) = reopen(copy.path());
        assert!(sample.check(&store, &[]).is_empty());
    }
}

#[test]
fn any_flipped_bit_affects_at_most_one_object() {
    let sample = Sample::new();
    let seed = haul_testing::seed();
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
        sample.check(&store, &lost);
    }
}

#[test]
fn truncated_file_affects_only_the_objects_at_its_end() {
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
            if removes_index {
                // The needles after the truncation are unknown.
                assert_eq!(recovered.hidden.len(), 1);
                for key in sample.all[BUCKET].keys().filter(|key| !lost.contains(&key.as_str())) {
                    match try_get(&store, key) {
                        Ok(bytes) => assert!(bytes == sample.all[BUCKET][key].0),
                        Err(error) => assert!(matches!(error, Error::Damaged { .. }), "{key}"),
                    }
                }
            } else {
                assert!(recovered.hidden.is_empty());
                sample.check(&store, &lost);
            }
            assert_eq!(big_files(copy.path()).len(), 3, "it is unknown that the files are orphans");
            put(&store, "key", b"new object");
            drop(store);
            let (store, _) = reopen(copy.path());
            assert_eq!(try_get(&store, "key").unwrap(), b"new object");
        }
    }
    let name = format!("objects/{}", big_files(sample.dir.path())[1]);
    for bytes in [0, 1, 5000, 131_072, 299_000, 308_000] {
        let copy = sample.copy();
        cut(&copy, &name, bytes);
        let (store, _) = reopen(copy.path());
        let key = (0..3).map(|n| format!("big {n}")).find(|key| try_get(&store, key).is_err());
        let found = sample.check(&store, &[&key.unwrap()]);
        assert_eq!(found.len(), 1, "truncated to {bytes}");
    }
}

#[test]
fn missing_big_file_is_damage() {
    let sample = Sample::new();
    let path = sample.dir.path().join("objects").join(&big_files(sample.dir.path())[0]);
    fs::remove_file(&path).unwrap();
    let (store, _) = reopen(sample.dir.path());
    let key = (0..3).map(|n| format!("big {n}")).find(|key| try_get(&store, key).is_err()).unwrap();
    let found = sample.check(&store, &[&key]);
    assert_eq!((&found[0].file, found[0].offset), (&path, 0));
    assert!(found[0].what.contains("missing"));
    assert!(store.delete(BUCKET, &key).unwrap());
}

#[test]
fn damage_prevents_the_removal_of_big_files() {
    let sample = Sample::new();
    // The needle of the first big object follows the last small object.
    let (volume, at) = sample.place("key 99");
    let header = (at + small_bytes(99) as u64).next_multiple_of(8);
    let path = sample.dir.path().join(volume);
    flip(&path, header);
    let (store, recovered) = reopen(sample.dir.path());
    assert_eq!((recovered.damage.len(), recovered.orphans_removed), (1, 0));
    // The index has the position of the needle, whose head is intact.
    sample.check(&store, &[]);
    store.delete(BUCKET, "key 98").unwrap();
    store.compact().unwrap();
    drop(store);
    // After the repair of the volume, all objects are intact.
    flip(&path, header);
    let (store, recovered) = reopen(sample.dir.path());
    assert!(recovered.damage.is_empty());
    assert_eq!(big_files(sample.dir.path()).len(), 3);
    assert!(try_get(&store, "big 0").unwrap() == sample.all[BUCKET]["big 0"].0);
}

#[test]
fn damage_of_an_upload_does_not_lose_its_parts_permanently() {
    let (dir, store) = new_store();
    let upload = store.start_upload(BUCKET, "key", &haul_file_store::Attributes::new()).unwrap();
    put_part(&store, "key", &upload, 1, b"part");
    store.close().unwrap();
    let path = dir.path().join("volumes/0000000001.segment");
    let volume = fs::read(&path).unwrap();
    // The ID of the upload occurs first in the needle that starts it.
    let id = u128::from_str_radix(&upload, 16).unwrap().to_le_bytes();
    let at = volume.windows(16).position(|window| window == id).unwrap() as u64;
    flip(&path, at);
    let (store, recovered) = reopen(dir.path());
    assert_eq!((recovered.damage.len(), store.stats().uploads), (1, 1));
    assert_eq!(recovered.damage[0].key.as_deref(), Some("key"));
    assert!(matches!(store.upload(BUCKET, "key", &upload), Err(Error::Damaged { .. })));
    assert_eq!(store.parts(BUCKET, "key", &upload).unwrap().len(), 1);
    drop(store);
    flip(&path, at);
    let (store, recovered) = reopen(dir.path());
    assert_eq!((recovered.damage.len(), store.stats().uploads), (0, 1));
    assert_eq!(store.parts(BUCKET, "key", &upload).unwrap().len(), 1);
}
