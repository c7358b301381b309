//! Tests readers and writers while compaction moves objects and frees their volume.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use haul_append_log::segment_name;
use haul_disk::{DeviceKind, Disk};
use haul_file_store::{Options, Store};

use crate::disk::TinyDisk;
use crate::explore::{Body, explore_part, in_threads};
use crate::history::{Change, Changes, History, KEYS, store_first};
use crate::{BUCKET, LONG, open, options, pause, prepare, put};

/// The bytes that are left in the newest volume of the prepared disk. Two long objects fill it, so
/// that compaction frees it, too.
const LEFT_BYTES: u32 = 120 << 10;

/// The maximum number of times that a thread reads all objects during the compaction.
const READS_MAX: usize = 20;

const CHANGES: Changes = [&[], &[Change::Put, Change::Put], &[Change::Delete]];

/// Returns a disk with two volumes. The first one has the objects of the history, and dead bytes.
fn prepared() -> TinyDisk {
    static DISK: OnceLock<TinyDisk> = OnceLock::new();
    DISK.get_or_init(|| prepare_volumes(fill)).after_power_cut()
}

/// Returns the disk that `fill` has filled, with its first volume, which the background threads of
/// the store may have compacted.
pub(crate) fn prepare_volumes(fill: fn(&Store)) -> TinyDisk {
    let has_first = |disk: &TinyDisk| disk.list("volumes").unwrap().contains(&segment_name(1));
    let mut attempts = std::iter::repeat_with(|| prepare(fill));
    attempts.find(has_first).expect("the attempts do not end")
}

fn fill(store: &Store) {
    store_first(store);
    fill_volumes(store);
}

/// Fills the first volume, and most of the second one, with objects that are deleted at the end.
pub(crate) fn fill_volumes(store: &Store) {
    let at = || store.log().synced();
    let first = at().segment();
    let bytes = store.log().segments()[0].bytes;
    let mut fillers = Vec::new();
    while at().segment() == first || at().offset() < bytes - LEFT_BYTES {
        fillers.push(format!("filler-{}", fillers.len()));
        put(store, &fillers[fillers.len() - 1], &[0; LONG]);
    }
    fillers.iter().for_each(|key| assert!(store.delete(BUCKET, key).unwrap()));
}

#[test]
fn objects_that_compaction_moves_are_read_as_they_are() {
    prepared();
    explore_part("compaction and readers", 1, || read_during_compaction(DeviceKind::SolidState));
}

#[test]
fn compaction_takes_turns_with_readers_on_a_rotational_disk() {
    prepared();
    explore_part("compaction in turns", 2, || read_during_compaction(DeviceKind::Rotational));
}

fn read_during_compaction(kind: DeviceKind) {
    let disk = prepared();
    let options = Options { disk_kind: Some(kind), ..options(1) };
    let store = Arc::new(Store::open_on(Arc::new(disk.clone()), options).unwrap().0);
    let history = History::default();
    let is_done = Arc::new(AtomicBool::new(false));
    let thread = |body: fn(&Store, &History, &AtomicBool)| -> Body {
        let (store, history) = (Arc::clone(&store), history.clone());
        let is_done = Arc::clone(&is_done);
        Box::new(move || body(&store, &history, &is_done))
    };
    let read = |store: &Store, history: &History, is_done: &AtomicBool| {
        for _ in 0..READS_MAX {
            history.check(store, &CHANGES, history.acknowledged());
            if is_done.load(Relaxed) {
                return;
            }
        }
    };
    in_threads(vec![
        thread(|store, _, is_done| {
            pause(100);
            store.compact().unwrap();
            is_done.store(true, Relaxed);
        }),
        thread(read),
        thread(read),
        thread(|store, history, _| {
            (1..KEYS).for_each(|key| history.run(store, &CHANGES, key));
        }),
        thread(|store, _, _| {
            for _ in 0..2 {
                pause(100);
                put(store, "filler", &[1; LONG]);
            }
        }),
    ]);
    let acknowledged = history.acknowledged();
    history.check(&store, &CHANGES, acknowledged);
    // An object that was moved behind its newer version or its deletion would be back.
    history.check(&open(&disk.after_power_cut()), &CHANGES, acknowledged);
}
