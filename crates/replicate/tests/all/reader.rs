//! Tests readers of a copy that another process extends.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use haul_disk::{Disk, OsDisk};
use haul_disk_sim::MemoryDisk;
use haul_file_store::{Error as StoreError, Options as StoreOptions, Replication as _, Store};
use haul_replicate::{CopyReader, CopyState, Error, Options, Remote};
use haul_testing::{Random, seed};
use tempfile::TempDir;

use crate::faulty::FaultyStore;
use crate::log::{names, read, write};
use crate::options;
use crate::store::{Original, content, objects, store_options};

const CACHE_BYTES: u64 = 1 << 20;

fn remote(store: &FaultyStore) -> Remote {
    Remote::new(Arc::new(store.clone()), "copy").unwrap()
}

fn reader_on(disk: Arc<dyn Disk>, remote: &Remote) -> CopyReader {
    CopyReader::open(remote, disk, CACHE_BYTES).unwrap()
}

fn reader(dir: &TempDir, remote: &Remote) -> CopyReader {
    reader_on(Arc::new(OsDisk::open(dir.path()).unwrap()), remote)
}

/// Opens the next state; `None` if it is open.
fn next(reader: &mut CopyReader, in_use: &[&str]) -> Option<(Store, CopyState)> {
    let options = StoreOptions { is_read_only: true, ..store_options(None) };
    let opened = reader.open_next(in_use, |disk| Store::open_on(disk, options)).unwrap();
    opened.map(|((store, report), state)| {
        assert!(report.damage.is_empty(), "{:?}", report.damage);
        (store, state)
    })
}

/// Returns the error of opening the next state.
fn failure(reader: &mut CopyReader) -> Error {
    let opened = reader.open_next(&[], |disk| Store::open_on(disk, store_options(None)));
    opened.map(drop).err().unwrap()
}

/// Opens the newest state, and returns its objects.
fn newest(reader: &mut CopyReader) -> BTreeMap<String, Vec<u8>> {
    let (store, state) = next(reader, &[]).unwrap();
    let found = objects(&store);
    store.close().unwrap();
    assert!(state.is_unused());
    state.remove().unwrap();
    found
}

/// A store with several volumes and big objects, whose copy is complete.
fn original(remote: &Remote) -> Original {
    let mut original = Original::new(remote);
    original.store.create_bucket("bucket").unwrap();
    for number in 0..600 {
        original.put(&format!("small/{number}"), content(number, 30_000));
    }
    for number in 0..3 {
        original.put(&format!("big/{number}"), content(number, 70_000 + 400_000 * number));
    }
    original.store.write_checkpoint().unwrap();
    original.put("last", content(1, 100));
    assert!(original.store.log().segments().len() > 4);
    original
}

#[test]
fn each_state_has_the_objects_of_its_time() {
    let store = FaultyStore::new();
    let mut original = original(&remote(&store));
    let remote = remote(&store);
    for disk in [None, Some(MemoryDisk::default())] {
        let dir = tempfile::tempdir().unwrap();
        let mut reader = match disk {
            None => reader(&dir, &remote),
            Some(disk) => reader_on(Arc::new(disk), &remote),
        };
        assert!(newest(&mut reader) == original.expected);
        assert!(next(&mut reader, &[]).is_none());

        original.put("last", content(2, 200));
        original.put("new", content(3, 300_000));
        original.delete("small/5");
        let (second, state) = next(&mut reader, &[]).unwrap();
        let expected = original.expected.clone();
        // A later state beside the one that is open.
        original.delete("new");
        original.put("small/5", content(6, 10));
        let (third, other) = next(&mut reader, &[state.name()]).unwrap();
        assert_ne!(other.name(), state.name());
        assert!(objects(&third) == original.expected);
        assert!(objects(&second) == expected);
        // An object keeps the state that it was read from.
        let object = second.open_object("bucket", "big/1").unwrap();
        drop(second);
        assert!(!state.is_unused());
        assert_eq!(object.read(0, 8).unwrap(), content(1, 8));
        drop(object);
        assert!(state.is_unused());
    }
}

/// After the first state, a reader fetches only what is new.
#[test]
fn new_state_costs_its_new_records_and_two_requests() {
    let store = FaultyStore::new();
    let mut original = original(&remote(&store));
    let remote = remote(&store);
    let dir = tempfile::tempdir().unwrap();
    let mut reader = reader(&dir, &remote);
    let (store, first) = next(&mut reader, &[]).unwrap();
    drop(store);
    let costs = || (remote.requests(), remote.received_bytes());
    let before = costs();
    assert!(next(&mut reader, &[]).is_none());
    assert_eq!(costs().0 - before.0, 1);

    original.put("new", content(1, 2000));
    let before = costs();
    drop(next(&mut reader, &[first.name()]).unwrap());
    let (requests, bytes) = (costs().0 - before.0, costs().1 - before.1);
    assert!(requests <= 2 && bytes < 20_000, "{requests} requests, {bytes} bytes");
}

#[test]
fn restarted_reader_fetches_nothing_again() {
    let store = FaultyStore::new();
    let original = original(&remote(&store));
    let remote = remote(&store);
    let dir = tempfile::tempdir().unwrap();
    assert!(newest(&mut reader(&dir, &remote)) == original.expected);
    let before = remote.requests();
    let mut again = reader(&dir, &remote);
    drop(next(&mut again, &[]).unwrap());
    assert_eq!(remote.requests() - before, 1, "only the manifest");
}

#[test]
fn directory_of_another_use_is_refused() {
    let store = FaultyStore::new();
    drop(original(&remote(&store)));
    let remote = remote(&store);
    let dir = tempfile::tempdir().unwrap();
    let open = || CopyReader::open(&remote, Arc::new(OsDisk::open(dir.path()).unwrap()), 1 << 20);
    let refusal = || open().map(drop).map_err(|error| error.to_string());
    let held = open().unwrap();
    let why = refusal().err().unwrap();
    assert!(why.contains("is in use by"), "{why}");
    drop(held);
    std::fs::write(dir.path().join("STORE"), "").unwrap();
    let why = refusal().err().unwrap();
    assert!(
        why.ends_with("is neither empty nor of a read-only server: it contains STORE"),
        "{why}"
    );
}

#[test]
fn directory_that_followed_another_copy_is_used_again() {
    let (one, other) = (FaultyStore::new(), FaultyStore::new());
    let first = original(&remote(&one));
    let dir = tempfile::tempdir().unwrap();
    assert!(newest(&mut reader(&dir, &remote(&one))) == first.expected);
    let mut second = Original::new(&remote(&other));
    second.store.create_bucket("bucket").unwrap();
    second.put("other", content(1, 10));
    assert!(newest(&mut reader(&dir, &remote(&other))) == second.expected);
}

#[test]
fn missing_copy_and_damage_are_errors_and_later_calls_try_again() {
    let store = FaultyStore::new();
    let dir = tempfile::tempdir().unwrap();
    let mut reader = reader(&dir, &remote(&store));
    assert!(matches!(failure(&mut reader), Error::NoCopy { .. }));
    let mut original = original(&remote(&store));
    assert!(newest(&mut reader) == original.expected);

    let before = names(&store);
    original.put("new", content(1, 60_000));
    let is_new = |name: &String| name.contains("/log/") && !before.contains(name);
    let chunk = names(&store).into_iter().find(is_new).unwrap();
    let intact = read(&store, &chunk);
    let mut damaged = intact.clone();
    damaged[100] ^= 1;
    write(&store, &chunk, damaged);
    assert!(matches!(failure(&mut reader), Error::Damaged { .. }));
    let status = reader.progress().status();
    assert!(status.last_error.is_some() && status.behind.is_some(), "{status:?}");
    write(&store, &chunk, intact);
    assert!(newest(&mut reader) == original.expected);
}

/// Otherwise the state would never be opened while the owner writes nothing.
#[test]
fn failed_opening_is_repeated() {
    let store = FaultyStore::new();
    let original = original(&remote(&store));
    let dir = tempfile::tempdir().unwrap();
    let mut reader = reader(&dir, &remote(&store));
    let fails = |_| Err::<(), _>(StoreError::Invalid { what: "as tested".to_owned() });
    assert!(matches!(reader.open_next(&[], fails), Err(Error::Store(_))));
    assert!(reader.progress().status().behind.is_some());
    assert!(newest(&mut reader) == original.expected);
    assert!(reader.progress().status().behind.is_none());
}

/// The owner moves objects to other volumes and removes volumes, and readers of earlier states do not
/// notice.
#[test]
fn earlier_states_are_readable_until_discarded_objects_are_deleted() {
    let store = FaultyStore::new();
    let options = Options { delete_after: Duration::from_secs(3600), ..options() };
    let mut original = Original::open_with(&MemoryDisk::default(), &remote(&store), options);
    original.store.create_bucket("bucket").unwrap();
    let remote = remote(&store);
    let dir = tempfile::tempdir().unwrap();
    let mut reader = reader(&dir, &remote);
    let mut random = Random(seed());
    let mut states: Vec<(CopyState, Store, BTreeMap<String, Vec<u8>>)> = Vec::new();
    for round in 0..12 {
        for _ in 0..100 {
            let key = format!("key/{}", random.below(150));
            match random.below(5) {
                0 => original.delete(&key),
                _ => original.put(&key, content(round, 8 * random.index(8000))),
            }
        }
        match random.below(3) {
            0 => drop(original.store.compact().unwrap()),
            1 => original.store.write_checkpoint().unwrap(),
            _ => {}
        }
        original.put("last", content(round, 10));
        let in_use: Vec<_> = states.iter().map(|(state, ..)| state.name()).collect();
        let (opened, state) = next(&mut reader, &in_use).unwrap();
        states.push((state, opened, original.expected.clone()));
        if random.below(2) == 0 {
            let (state, opened, _) = states.remove(random.index(states.len()));
            opened.close().unwrap();
            state.remove().unwrap();
        }
        for (number, (_, opened, expected)) in states.iter().enumerate() {
            assert!(objects(opened) == *expected, "round {round}, state {number}");
        }
    }
}

#[test]
fn discarded_objects_are_deleted_after_the_delay() {
    for (delay, is_deleted) in [(Duration::ZERO, true), (Duration::from_secs(3600), false)] {
        let store = FaultyStore::new();
        let options = Options { delete_after: delay, ..options() };
        let mut original = Original::open_with(&MemoryDisk::default(), &remote(&store), options);
        original.store.create_bucket("bucket").unwrap();
        let chunks = || names(&store).iter().filter(|name| name.contains("/log/")).count();
        for number in 0..600 {
            original.put("key", content(number, 30_000));
        }
        let before = chunks();
        original.store.compact().unwrap();
        original.put("key", content(1, 10));
        original.replica.wait().unwrap();
        assert_eq!(chunks() < before, is_deleted, "{delay:?}: {} of {before}", chunks());
    }
}
