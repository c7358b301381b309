//! Power cuts at each write and sync of both stores' disks during a move.

use std::cell::Cell;
use std::collections::BTreeMap;

use haul_disk::{Disk, Durability, Open, read_full, write_full};
use haul_disk_sim::{Crash, Crashes, Device, MemoryDisk, crash_everywhere, print_count};
use haul_file_store::{MovedKey, Store, Versioning};
use haul_testing::{Random, depth};

use super::acts::act;
use super::visible::{Visible, check_union, visible};
use super::{KINDS, Kind, Pair};
use crate::BUCKET;

const KEY: &str = "key";
const OTHER: &str = "other";

/// The number of crash states for each unit of depth, and for each kind of a bucket.
const STATES: u64 = 340;

/// The state of the first store before the move.
type Before = BTreeMap<String, Visible>;

/// The move has begun.
struct Begun;

/// The move has returned.
struct Moved;

/// A recovery has completed the move.
struct Completed;

fn is_rich(seen: &Before, kind: Kind) -> bool {
    let Some(key) = seen.get(KEY) else { return false };
    let files = |state: &Visible| {
        let read = state.versions.iter().filter_map(|(_, read)| read.as_ref());
        read.filter(|read| read.bytes.len() >= crate::BIG).count()
    };
    let has_parts = key.uploads.iter().any(|(_, parts)| !parts.is_empty());
    has_parts && files(key) > 0 && (kind == Kind::Plain || key.versions.len() >= 3)
}

/// Creates a key with much under it in the first store.
fn prepare(disk: &MemoryDisk, seed: u64, kind: Kind) -> Before {
    let (pair, mut random) = (Pair::create(disk, kind), Random(seed));
    let mut seen = Before::new();
    for number in 0.. {
        if kind == Kind::Versions && number == 4 {
            pair.set_versioning(Versioning::Enabled);
        }
        let key = if random.below(8) == 0 { OTHER } else { KEY };
        act(&mut random, &pair, 0, kind, key);
        if number > 12 {
            seen = visible(&pair.stores[0]);
            if is_rich(&seen, kind) {
                break;
            }
        }
    }
    pair.close();
    seen
}

/// Copies a directory with few steps, so that few crashes come before the move.
fn copy_dir(from: &MemoryDisk, to: &MemoryDisk, dir: &str) {
    for name in from.list(dir).unwrap() {
        let name = if dir.is_empty() { name } else { format!("{dir}/{name}") };
        let Ok(file) = from.open(&name, Open::default()) else {
            to.create_dir(&name).unwrap();
            copy_dir(from, to, &name);
            continue;
        };
        let mut bytes = vec![0; usize::try_from(file.bytes().unwrap()).unwrap()];
        read_full(&*file, &mut bytes, 0).unwrap();
        let copy = to.create(&name, Open::default()).unwrap();
        write_full(&*copy, &bytes, 0).unwrap();
        copy.sync(Durability::Everything).unwrap();
    }
    to.sync_dir(dir).unwrap();
}

/// Moves a key with much under it.
fn run(disk: &MemoryDisk, seed: u64, kind: Kind) -> Before {
    let prepared = MemoryDisk::default();
    let seen = prepare(&prepared, seed, kind);
    copy_dir(&prepared, disk, "");
    disk.note(Begun);
    let pair = Pair::open(disk);
    let [from, to] = &pair.stores;
    from.move_key(to, BUCKET, KEY).unwrap();
    disk.note(Moved);
    pair.close();
    seen
}

/// Reopens both stores, checks that they have the state of the key together, and completes the
/// move.
fn recover(before: &Before, crash: &Crash, checked: &Cell<u64>) {
    if crash.notes::<Begun>().count() == 0 {
        return;
    }
    checked.set(checked.get() + 1);
    let mut pair = Pair::open(&crash.disk);
    let expected = before.get(KEY).unwrap();
    let [from, to] = &pair.stores;
    check_union([from, to], KEY, expected);
    let is_moved = crash.notes::<Moved>().count() + crash.notes::<Completed>().count() > 0;
    let usage = |store: &Store| store.quota(BUCKET).unwrap().usage;
    let moved = from.move_key(to, BUCKET, KEY).unwrap();
    assert!(!is_moved || moved == MovedKey::default(), "it was moved already");
    crash.disk.note(Completed);
    for is_reopened in [false, true] {
        if is_reopened {
            if !checked.get().is_multiple_of(4) {
                break;
            }
            pair.close();
            pair = Pair::open(&crash.disk);
        }
        let [from, to] = &pair.stores;
        let mut here = before.clone();
        let there = BTreeMap::from_iter(here.remove_entry(KEY));
        assert_eq!([visible(from), visible(to)], [here, there]);
        let bytes = |state: &Visible| {
            let parts = state.uploads.iter().flat_map(|(_, parts)| parts).map(|part| part.bytes);
            let versions = state.versions.iter().map(|(version, _)| version.info.bytes);
            versions.chain(parts).sum::<u64>()
        };
        let expected: u64 = before.values().map(bytes).sum();
        assert_eq!((usage(from), usage(from).bytes), (usage(to), expected));
        for (dir, store) in ["one/objects", "other/objects"].iter().zip(&pair.stores) {
            let files = crash.disk.list(dir).unwrap().len() as u64;
            assert_eq!(files, store.stats().big_files, "unexpected or missing files in {dir}");
        }
    }
}

fn crash_in(kind: Kind) {
    let mut crashes = Crashes {
        steps: 80,
        worst: Device::StaleBlocks,
        all_up_to: 2,
        draws: 1,
        again_one_in: 64,
        again_steps: 8,
        ..Crashes::default()
    };
    let (checked, first) = (Cell::new(0), crashes.seed);
    while checked.get() < STATES * depth() {
        let seed = crashes.seed;
        crash_everywhere(
            &crashes,
            |disk| run(disk, seed, kind),
            |before, crash| recover(before, crash, &checked),
        );
        crashes.seed = crashes.seed.wrapping_add(1);
    }
    print_count(&format!("{} crash states of a move, {kind:?}", checked.get()), first);
}

#[test]
fn crash_during_a_move_leaves_a_key_that_can_be_moved() {
    KINDS.into_iter().for_each(crash_in);
}
