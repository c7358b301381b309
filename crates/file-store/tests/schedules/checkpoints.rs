//! Tests power cuts while checkpoints of the index are written beside puts and deletions.

use std::sync::{Arc, Mutex, OnceLock};

use haul_file_store::Store;

use crate::disk::TinyDisk;
use crate::explore::{Body, explore_part, in_threads};
use crate::history::{Change, Changes, History, store_first};
use crate::{open, pause, prepare};

const CHANGES: Changes = [
    &[Change::Put, Change::Delete, Change::Put],
    &[Change::Put, Change::Put],
    &[Change::Start, Change::Delete, Change::Start],
];

fn prepared() -> TinyDisk {
    static DISK: OnceLock<TinyDisk> = OnceLock::new();
    DISK.get_or_init(|| prepare(store_first)).after_power_cut()
}

#[test]
fn checkpoints_and_the_log_have_every_acknowledged_change() {
    prepared();
    explore_part("checkpoints and writers", 1, || {
        let disk = prepared();
        let store = Arc::new(open(&disk));
        let history = History::default();
        let thread = |body: fn(&Store, &History)| -> Body {
            let (store, history) = (Arc::clone(&store), history.clone());
            Box::new(move || body(&store, &history))
        };
        let cut = Arc::new(Mutex::new(None));
        let (taken, in_use, so_far) = (Arc::clone(&cut), disk.clone(), history.clone());
        let cutting: Body = Box::new(move || {
            pause(300);
            // No thread runs between these two calls.
            let (acknowledged, disk) = (so_far.acknowledged(), in_use.after_power_cut());
            *taken.lock().unwrap() = Some((acknowledged, disk));
        });
        in_threads(vec![
            thread(|store, history| history.run(store, &CHANGES, 0)),
            thread(|store, history| history.run(store, &CHANGES, 1)),
            thread(|store, history| history.run(store, &CHANGES, 2)),
            thread(|store, _| {
                pause(60);
                store.write_checkpoint().unwrap();
            }),
            cutting,
        ]);
        let acknowledged = history.acknowledged();
        history.check(&store, &CHANGES, acknowledged);
        history.check(&open(&disk.after_power_cut()), &CHANGES, acknowledged);
        let (acknowledged, disk) = cut.lock().unwrap().take().unwrap();
        history.check(&open(&disk), &CHANGES, acknowledged);
    });
}
