//! Random keys that are moved to and fro: everything that is visible stays.

use std::collections::BTreeMap;

use haul_disk::Disk;
use haul_disk_sim::{MemoryDisk, print_count};
use haul_file_store::{Attributes, MovedKey, Precondition, Store, Versioning};
use haul_testing::{PrintOnPanic, Random, depth, replay_command, seed};

use super::acts::act;
use super::visible::{Visible, visible};
use super::{KINDS, Kind, Pair};
use crate::BUCKET;

/// Keys of which some are prefixes of others, or need an encoding in the names of versions.
const KEYS: [&str; 7] = ["a", "a\0", "a\0b", "a\u{1}", "a/b", "ab", "ä"];

/// Moves some keys from the store with number `from` to the other one. Returns their number.
fn move_some(
    random: &mut Random,
    pair: &Pair,
    from: usize,
    one_in: u64,
    holders: &mut BTreeMap<&str, usize>,
) -> u64 {
    let (here, there) = (&pair.stores[from], &pair.stores[1 - from]);
    let mut expected = [visible(here), visible(there)];
    let used = |store: &Store| store.quota(BUCKET).unwrap().usage;
    let (before, versions) = (used(here), total(pair));
    let mut moved = 0;
    for key in KEYS {
        if random.below(one_in) != 0 {
            continue;
        }
        let state = expected[0].remove(key);
        holders.insert(key, 1 - from);
        let outcome = here.move_key(there, BUCKET, key).unwrap();
        check_counts(outcome, state.as_ref());
        assert_eq!(here.move_key(there, BUCKET, key).unwrap(), MovedKey::default(), "again");
        if let Some(state) = state {
            expected[1].insert(key.to_owned(), state);
            moved += 1;
        }
    }
    assert_eq!([visible(here), visible(there)], expected);
    assert_eq!((used(here), used(there), total(pair)), (before, before, versions));
    moved
}

fn check_counts(moved: MovedKey, state: Option<&Visible>) {
    let Some(state) = state else { return assert_eq!(moved, MovedKey::default()) };
    let parts = state.uploads.iter().flat_map(|(_, parts)| parts).map(|part| part.bytes);
    let versions = state.versions.iter().map(|(version, _)| version.info.bytes);
    let bytes = versions.chain(parts).sum();
    let (objects, uploads) = (state.versions.len() as u64, state.uploads.len() as u64);
    assert_eq!(moved, MovedKey { objects, uploads, bytes });
}

/// Returns the numbers of objects and older versions, and of their bytes, in both stores.
fn total(pair: &Pair) -> [u64; 3] {
    let stats = pair.stores.each_ref().map(Store::stats);
    [
        stats.iter().map(|it| it.objects).sum(),
        stats.iter().map(|it| it.versions).sum(),
        stats.iter().map(|it| it.object_bytes).sum(),
    ]
}

/// Completes all uploads of a store, which were moved.
fn complete_all(store: &Store) {
    let seen: BTreeMap<String, Visible> = visible(store);
    for (key, state) in seen {
        for (upload, parts) in state.uploads.iter().filter(|(_, parts)| !parts.is_empty()) {
            let named: Vec<_> = parts.iter().map(|part| (part.number, part.etag)).collect();
            let (none, always) = (Attributes::new(), Precondition::None);
            let object = store.complete_upload(BUCKET, &key, &upload.id, &named, &none, &always);
            assert_eq!(object.unwrap().bytes, parts.iter().map(|part| part.bytes).sum::<u64>());
            let lengths: Vec<u64> = parts.iter().map(|part| part.bytes).collect();
            assert_eq!(store.get(BUCKET, &key).unwrap().part_bytes(), lengths);
        }
    }
}

fn check_files(disk: &MemoryDisk, pair: &Pair) {
    for (dir, store) in ["one/objects", "other/objects"].iter().zip(&pair.stores) {
        let files = disk.list(dir).unwrap().len() as u64;
        assert_eq!(files, store.stats().big_files, "unexpected or missing files in {dir}");
    }
}

/// Executes random acts, moves keys between two stores, reopens and compacts them. Returns the
/// number of moved keys.
fn run(seed: u64, kind: Kind) -> u64 {
    let _context = PrintOnPanic(format!("{kind:?}, {seed}"));
    let (disk, mut random, mut moved) = (MemoryDisk::default(), Random(seed), 0);
    let mut pair = Pair::create(&disk, kind);
    // A pool writes to a key in the store that has it.
    let mut holders: BTreeMap<&str, usize> = KEYS.iter().map(|key| (*key, 0)).collect();
    for round in 0..6 {
        let on = round % 2;
        for number in 0..60 {
            if kind == Kind::Versions && round == 0 && number == 10 {
                pair.set_versioning(Versioning::Enabled);
            }
            let key = *random.pick(&KEYS);
            act(&mut random, &pair, holders[key], kind, key);
        }
        moved += {
            let one_in = if round % 3 == 2 { 2 } else { 1 };
            move_some(&mut random, &pair, on, one_in, &mut holders)
        };
        check_files(&disk, &pair);
        let before = pair.stores.each_ref().map(visible);
        if random.below(2) == 0 {
            // The needles that the move has left behind are removed, and others are moved.
            pair.stores.iter().for_each(|store| {
                store.compact().unwrap();
            });
        }
        pair.close();
        if random.below(2) == 0 {
            // The index is rebuilt from the volumes.
            for name in disk.list("one/index").unwrap() {
                disk.remove(&format!("one/index/{name}")).unwrap();
            }
        }
        pair = Pair::open(&disk);
        assert_eq!(pair.stores.each_ref().map(visible), before, "after reopening");
        if round == 4 {
            complete_all(&pair.stores[1 - on]);
        }
    }
    pair.close();
    moved
}

#[test]
fn everything_visible_of_a_key_is_moved() {
    let first = seed();
    let mut moved = 0;
    for round in 0..4 * depth() {
        for kind in KINDS {
            moved += run(first.wrapping_add(round), kind);
        }
    }
    print_count(&format!("{moved} keys moved"), first);
    println!("{}", replay_command(first));
}
