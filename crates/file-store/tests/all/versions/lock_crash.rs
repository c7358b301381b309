//! Crashes after every step of a workload with object lock.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use haul_disk_sim::{Crash, Crashes, MemoryDisk, crash_everywhere, crash_until};
use haul_file_store::{Attributes, NewObject, Precondition, Store};
use haul_testing::Random;

use super::contents::list_all;
use super::lock_model::{LockAct, LockModel, START_MS, attack, create, options};
use crate::crash::until_compacted;
use crate::{BIG, BUCKET};

/// The acts of a workload, and the expected states of the store before each act and after the last.
struct Workload {
    models: Vec<LockModel>,
    acts: Vec<LockAct>,
    volumes_compacted: u64,
}

/// The number of acknowledged acts.
struct Acknowledged(usize);

/// A recovery checked the content.
struct Recovered;

fn workload(disk: &MemoryDisk, seed: u64, acts: usize, compacts: bool) -> Workload {
    let (mut random, time) = (Random(seed), Arc::new(AtomicU64::new(START_MS)));
    let open = || Store::open_on(Arc::new(disk.clone()), options(&time)).unwrap().0;
    let mut store = open();
    create(&store);
    disk.note(Acknowledged(0));
    let mut model = LockModel::new();
    let mut workload = Workload { models: Vec::new(), acts: Vec::new(), volumes_compacted: 0 };
    for number in 1..=acts {
        workload.models.push(model.clone());
        let act = match compacts && number == acts / 2 {
            true => {
                fill_volume(&store);
                LockAct::Compact
            }
            false => model.plan(&mut random, false),
        };
        let stored = model.execute(&act, &store, &time);
        model.apply(&act, stored);
        workload.acts.push(act);
        disk.note(Acknowledged(number));
        if random.below(30) == 0 {
            workload.volumes_compacted += store.stats().volumes_compacted;
            store.close().unwrap();
            store = open();
        }
    }
    workload.models.push(model);
    workload.volumes_compacted += store.stats().volumes_compacted;
    workload
}

/// Fills the rest of the volume with objects of another bucket, and deletes them.
fn fill_volume(store: &Store) {
    let (bytes, none) = (vec![0; BIG - 1], Attributes::new());
    let keys: Vec<_> = (0..(5 << 20) / BIG).map(|number| number.to_string()).collect();
    store.create_bucket("filler").unwrap();
    let precondition = &Precondition::None;
    let object = |key| NewObject { key, bytes: &bytes, attributes: &none, precondition };
    let keys: Vec<_> = keys.iter().map(String::as_str).collect();
    let objects: Vec<_> = keys.iter().copied().map(object).collect();
    store.put_many("filler", &objects).into_iter().for_each(|stored| drop(stored.unwrap()));
    store.delete_many("filler", &keys).into_iter().for_each(|deleted| assert!(deleted.unwrap()));
}

fn recover(workload: &Workload, crash: &Crash) {
    let acknowledged = crash.notes().last().map(|Acknowledged(number)| *number);
    let before = &workload.models[acknowledged.unwrap_or(0)];
    let time = Arc::new(AtomicU64::new(before.now_ms));
    let store = Store::open_on(Arc::new(crash.disk.clone()), options(&time)).unwrap().0;
    let Some(acknowledged) = acknowledged else {
        // The bucket is created with its lock, or not at all.
        let exists = !store.buckets().unwrap().is_empty();
        assert!(!exists || store.has_object_lock(BUCKET).unwrap());
        return;
    };
    let act = workload.acts.get(acknowledged);
    let after = workload.models.get(acknowledged + 1).unwrap_or(before);
    if crash.notes::<Recovered>().next().is_some() {
        // The first recovery has changed the store.
        assert!(before.is_protected_in(after, &store), "after {acknowledged}, in {act:?}");
        return;
    }
    let is_sweep = matches!(act, Some(LockAct::Expire));
    let is_state = before.is_state_of(&store)
        || after.is_state_of(&store)
        || (is_sweep && before.is_between(after, &store));
    assert!(is_state, "after {acknowledged}, in {act:?}: {:?}", list_all(&store, 1000));
    crash.disk.note(Recovered);
    attack(&store, before.now_ms);
}

#[test]
fn crash_loses_no_lock_and_no_locked_version() {
    let crashes = Crashes { draws: 2, again_one_in: 16, ..Crashes::default() };
    crash_until(400, &crashes, |crashes| {
        crash_everywhere(crashes, |disk| workload(disk, crashes.seed, 40, false), recover)
    });
}

#[test]
fn crash_during_compaction_loses_no_lock_and_no_locked_version() {
    let crashes = Crashes { draws: 1, all_up_to: 4, again_one_in: 32, ..Crashes::default() };
    until_compacted(&crashes, |crashes| {
        // The volumes of some workloads have too few dead bytes.
        if workload(&MemoryDisk::default(), crashes.seed, 30, true).volumes_compacted == 0 {
            return 0;
        }
        let mut compacted = 0;
        crash_until(200, crashes, |crashes| {
            let run = |disk: &MemoryDisk| {
                let workload = workload(disk, crashes.seed, 30, true);
                compacted += workload.volumes_compacted;
                workload
            };
            crash_everywhere(crashes, run, recover)
        });
        compacted
    });
}
