//! Moves with damage, on full disks, and with failing system calls.

use std::sync::Arc;
use std::time::Duration;

use haul_disk::{Disk, Op, Open, read_full};
use haul_disk_sim::MemoryDisk;
use haul_file_store::{
    Attributes, Error, ListVersionsRequest, MovedKey, Options, Store, VersionListEntry, Versioning,
};
use rustix::io::Errno;

use super::visible::{keys, visible};
use super::{Kind, Pair};
use crate::{BIG, BUCKET, put, put_part, random_bytes, small};

const KEY: &str = "key";

/// Flips a bit wherever files below `dir` have these bytes: a retained object is stored twice.
fn rot(disk: &MemoryDisk, dir: &str, bytes: &[u8]) {
    let mut found = 0;
    for name in disk.list(dir).unwrap() {
        let name = format!("{dir}/{name}");
        let file = disk.open(&name, Open::default()).unwrap();
        let mut content = vec![0; usize::try_from(file.bytes().unwrap()).unwrap()];
        read_full(&*file, &mut content, 0).unwrap();
        let windows = content.windows(bytes.len()).enumerate();
        for (at, _) in windows.filter(|(_, window)| *window == bytes) {
            disk.rot(&name, at as u64 + 3, 1);
            found += 1;
        }
    }
    assert!(found > 0, "no file in {dir} has the bytes");
}

/// Nothing of a key with a damaged needle or file is moved, and other keys are.
#[test]
fn damage_fails_the_move_of_its_key_and_names_the_place() {
    for (dir, length, is_older) in [
        ("one/volumes", 3000, false),
        ("one/volumes", 3000, true),
        ("one/objects", BIG + 1, false),
        ("one/objects", BIG + 1, true),
    ] {
        let disk = MemoryDisk::default();
        let pair = Pair::create(&disk, Kind::Versions);
        pair.set_versioning(Versioning::Enabled);
        let [from, to] = &pair.stores;
        let bytes = random_bytes(7, length);
        for other in ["a", "z"] {
            put(from, other, b"other");
        }
        put(from, KEY, b"oldest");
        put(from, KEY, &bytes);
        if is_older {
            put(from, KEY, b"newest");
        }
        let upload = from.start_upload(BUCKET, KEY, &Attributes::new()).unwrap();
        put_part(from, KEY, &upload, 1, b"part");
        rot(&disk, dir, &bytes[..64]);
        let before = listed(from);
        let outcome = from.move_key(to, BUCKET, KEY);
        let Err(Error::Damaged { file, .. }) = &outcome else { panic!("{dir}: {outcome:?}") };
        assert!(file.to_string_lossy().contains(dir), "{file:?}");
        let after = (listed(from), keys(to, 10));
        assert_eq!(after, (before, vec![]), "nothing was changed");
        assert_eq!(disk.list("other/objects").unwrap(), Vec::<String>::new());
        for other in ["a", "z"] {
            assert_eq!(from.move_key(to, BUCKET, other).unwrap().objects, 1);
        }
        assert_eq!(keys(to, 10), ["a", "z"]);
        assert_ne!(from.stats().damaged_locations, 0);
    }
}

fn listed(store: &Store) -> Vec<VersionListEntry> {
    let request = ListVersionsRequest { limit: 1000, ..ListVersionsRequest::default() };
    store.list_versions(BUCKET, &request).unwrap().entries
}

#[test]
fn full_store_is_an_error_and_gives_up_its_keys() {
    let disks = [MemoryDisk::default(), MemoryDisk::default()];
    let options = Options { stall_max: Duration::from_millis(100), ..small() };
    let pair =
        Pair::create_on(disks.each_ref(), Kind::Versions, [options.clone(), options.clone()]);
    pair.set_versioning(Versioning::Enabled);
    let [from, to] = &pair.stores;
    put(from, KEY, &random_bytes(1, 10 * BIG));
    put(from, KEY, b"small");
    let before = visible(from);
    disks[1].limit(Some(disks[1].used_bytes()));
    let outcome = from.move_key(to, BUCKET, KEY);
    assert!(matches!(outcome, Err(Error::Full { .. } | Error::Stalled { .. })), "{outcome:?}");
    assert_eq!((visible(from), keys(to, 10)), (before.clone(), vec![]));
    disks[1].limit(None);
    disks[0].limit(Some(disks[0].used_bytes()));
    assert_eq!(from.move_key(to, BUCKET, KEY).unwrap().objects, 2, "tombstones use the reserve");
    assert_eq!((keys(from, 10), visible(to)), (vec![], before));
}

/// A failure of any system call leaves a state from which a repeated call, after the stores were
/// opened again, completes the move.
#[test]
fn failed_call_leaves_a_key_that_can_be_moved() {
    for op in [Op::Write, Op::Sync, Op::Create, Op::Rename, Op::SyncDir, Op::Read] {
        for on in 0..2 {
            for n in 1..=6 {
                let disks = [MemoryDisk::default(), MemoryDisk::default()];
                let options = || [small(), small()];
                let pair = Pair::create_on(disks.each_ref(), Kind::Plain, options());
                let [from, to] = &pair.stores;
                put(from, KEY, &random_bytes(1, 2 * BIG));
                let none = Attributes::new();
                let upload = from.start_upload(BUCKET, KEY, &none).unwrap();
                put_part(from, KEY, &upload, 1, b"part");
                let before = visible(from);
                disks[on].fail(op, n, 1, Errno::IO);
                let outcome = from.move_key(to, BUCKET, KEY);
                disks[on].heal();
                drop(pair);
                let reopened = disks.each_ref().map(|disk| Arc::new(disk.clone()) as _);
                let pair = Pair::open_on(reopened, options());
                let [from, to] = &pair.stores;
                let moved = from.move_key(to, BUCKET, KEY).unwrap();
                let is_first = outcome.is_err();
                assert!(is_first || moved == MovedKey::default());
                assert_eq!((keys(from, 10), visible(to)), (vec![], before), "{op:?} {n} on {on}");
            }
        }
    }
}
