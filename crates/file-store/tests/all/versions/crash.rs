//! Crashes after every step of a workload with versions.

use std::sync::Arc;

use haul_disk::Disk;
use haul_disk_sim::{Crash, Crashes, MemoryDisk, crash_everywhere, crash_until};
use haul_file_store::{Attributes, Error, Precondition, Store, Versioning};
use haul_testing::Random;

use super::model::{Act, Model};
use crate::crash::until_compacted;
use crate::{BUCKET, small};

/// The acts of a workload, and the expected states of the store before each act and after the last.
struct Workload {
    models: Vec<Model>,
    acts: Vec<Act>,
    volumes_compacted: u64,
}

/// The number of acknowledged acts.
struct Acknowledged(usize);

/// A recovery checked the content.
struct Recovered;

fn open_on(disk: &MemoryDisk) -> Store {
    Store::open_on(Arc::new(disk.clone()), small()).unwrap().0
}

fn run(disk: &MemoryDisk, seed: u64, acts: usize, is_long: bool) -> Workload {
    let (mut store, mut random) = (open_on(disk), Random(seed));
    store.create_bucket(BUCKET).unwrap();
    disk.note(Acknowledged(0));
    let mut model = Model::default();
    let mut workload = Workload { models: Vec::new(), acts: Vec::new(), volumes_compacted: 0 };
    for number in 1..=acts {
        workload.models.push(model.clone());
        let act = match number {
            3 => Act::Set(Versioning::Enabled),
            // Random acts alone do not always compact a volume.
            _ if is_long && number % 40 == 0 => Act::Compact,
            _ => model.plan(&mut random, is_long),
        };
        let ids = model.execute(&act, &store).unwrap();
        model.apply(&act, &ids);
        workload.acts.push(act);
        disk.note(Acknowledged(number));
        if random.below(30) == 0 {
            workload.volumes_compacted += store.stats().volumes_compacted;
            store.close().unwrap();
            store = open_on(disk);
        }
    }
    workload.models.push(model);
    workload.volumes_compacted += store.stats().volumes_compacted;
    workload
}

/// Reopens the store, checks its content, and stores another object in another bucket.
fn recover(workload: &Workload, crash: &Crash) {
    let Some(Acknowledged(acknowledged)) = crash.notes().last() else { return };
    let is_first = crash.notes::<Recovered>().count() == 0;
    if !is_first && acknowledged % 8 == 3 {
        return;
    }
    if acknowledged % 2 == 1 && is_first {
        for name in crash.disk.list("index").unwrap() {
            crash.disk.remove(&format!("index/{name}")).unwrap();
        }
    }
    let (store, recovered) = Store::open_on(Arc::new(crash.disk.clone()), small()).unwrap();
    let is_damage = |what: &str| !what.contains("this copy of the manifest");
    assert!(recovered.damage.iter().all(|it| !is_damage(&it.what)), "{recovered:?}");
    let act = workload.acts.get(*acknowledged);
    let model = &workload.models[*acknowledged];
    let left = model.after_crash(act, &store);
    let Some(mut model) = left else { panic!("after {acknowledged}, in {act:?}") };
    let files = crash.disk.list("objects").unwrap().len() as u64;
    assert_eq!(files, store.stats().big_files, "unexpected or missing files");
    crash.disk.note(Recovered);
    if is_first && acknowledged % 8 == 3 {
        // A copy that the crash left among the versions has no effect on later acts.
        let mut random = Random(u64::try_from(*acknowledged).unwrap());
        for _ in 0..8 {
            let act = model.plan(&mut random, false);
            let ids = model.execute(&act, &store).unwrap();
            model.apply(&act, &ids);
        }
        model.check(&store, 1000);
        return;
    }
    match store.create_bucket("afterwards") {
        Ok(()) | Err(Error::BucketExists { .. }) => {}
        Err(other) => panic!("{other:?}"),
    }
    drop(store.put("afterwards", "key", b"", &Attributes::new(), &Precondition::None).unwrap());
}

fn crash_in(least: u64, crashes: &Crashes, acts: usize, is_long: bool) -> u64 {
    let mut compacted = 0;
    crash_until(least, crashes, |crashes| {
        let workload = |disk: &MemoryDisk| {
            let workload = run(disk, crashes.seed, acts, is_long);
            compacted += workload.volumes_compacted;
            workload
        };
        crash_everywhere(crashes, workload, recover)
    });
    compacted
}

#[test]
fn crash_loses_and_restores_no_version() {
    let crashes = Crashes { draws: 3, again_one_in: 16, ..Crashes::default() };
    crash_in(800, &crashes, 60, false);
}

#[test]
fn crash_during_compaction_loses_and_restores_no_version() {
    let crashes = Crashes { draws: 1, all_up_to: 4, again_one_in: 16, ..Crashes::default() };
    until_compacted(&crashes, |crashes| {
        // The volumes of some workloads have too few dead bytes.
        match run(&MemoryDisk::default(), crashes.seed, 160, true).volumes_compacted {
            0 => 0,
            _ => crash_in(800, crashes, 160, true),
        }
    });
}
