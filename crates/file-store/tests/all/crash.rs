//! A power cut or a kill after any step of a workload, and after any step of the recovery from it.

use std::sync::Arc;

use haul_disk::Disk;
use haul_file_store::{Attributes, Precondition, Recovered, Store};
use haul_test_disk::{Medium, Random, Step, Survival, TestDisk};

use crate::script::{Act, Lengths, Model, Seeded, Seen, seed};
use crate::small;

pub(crate) fn open_on(disk: &TestDisk) -> (Store, Recovered) {
    Store::open_on(Arc::new(disk.clone()), small()).unwrap()
}

/// What a workload did to its disk, and what the store must hold in between.
struct Workload {
    steps: Vec<Step>,
    /// Before each act and after the last. A note among the steps counts the acts acknowledged.
    models: Vec<Model>,
    acts: Vec<Act>,
    volumes_compacted: u64,
}

impl Workload {
    fn new(seed: u64, acts: u64, lengths: Lengths) -> Self {
        let disk = TestDisk::default();
        let (mut store, mut random) = (open_on(&disk).0, Random(seed));
        let mut workload = Self {
            steps: Vec::new(),
            models: vec![Model::default()],
            acts: Vec::new(),
            volumes_compacted: 0,
        };
        for number in 1..=acts {
            let mut model = workload.models.last().unwrap().clone();
            let act = model.plan(&mut random, lengths);
            let started = model.carry_out(&act, &store).unwrap();
            model.apply(&act, started);
            disk.note(number);
            workload.models.push(model);
            workload.acts.push(act);
            if random.below(40) == 0 {
                workload.volumes_compacted += store.stats().volumes_compacted;
                store.close().unwrap();
                store = open_on(&disk).0;
            }
        }
        workload.volumes_compacted += store.stats().volumes_compacted;
        drop(store);
        workload.steps = disk.steps();
        workload
    }

    /// Calls `each` with the medium and the acts acknowledged, after each step.
    fn after_each_step(&self, mut each: impl FnMut(u64, &Medium, usize)) {
        let (mut medium, mut acknowledged) = (Medium::default(), 0);
        for (number, step) in (0..).zip(&self.steps) {
            medium.take(step);
            if let Step::Note(acts) = step {
                acknowledged = usize::try_from(*acts).unwrap();
            }
            each(number, &medium, acknowledged);
        }
    }

    /// All acknowledged acts hold, and of the one that was under way all or nothing.
    fn check(&self, disk: &TestDisk, acknowledged: usize) -> (Store, Seen) {
        let (store, recovered) = open_on(disk);
        assert_eq!(recovered.damage, [], "a power cut is not damage");
        let seen = Seen::of(&store);
        let act = self.acts.get(acknowledged);
        assert!(self.models[acknowledged].allows(act, &seen), "after {acknowledged}, in {act:?}");
        let files = disk.list("objects").unwrap().len() as u64;
        assert_eq!(files, store.stats().big_files, "files too many or too few");
        (store, seen)
    }
}

/// What was found stays, and what is stored now survives the next power cut.
fn goes_on(disk: &TestDisk, store: Store, seen: &Seen, survival: Survival) {
    let none = Attributes::new();
    match store.create_bucket("afterwards") {
        Ok(()) | Err(haul_file_store::Error::BucketExists { .. }) => {}
        Err(other) => panic!("{other:?}"),
    }
    store.put("afterwards", "key", b"bytes", &none, &Precondition::None).unwrap();
    let medium = disk.medium();
    drop(store);
    let (store, _) = open_on(&TestDisk::on(&medium.cut(survival)));
    let object = store.get("afterwards", "key").unwrap();
    assert_eq!(&object.read(0, 10).unwrap()[..], b"bytes");
    store.delete("afterwards", "key").unwrap();
    store.delete_bucket("afterwards").unwrap();
    assert!(Seen::of(&store) == *seen, "after the next power cut");
}

/// A power cut at every so many steps of a recovery changes nothing of what it found.
fn recover_again(left: &Medium, recovery: &[Step], seen: &Seen, every: usize, seed: u64) -> u32 {
    let (mut medium, mut states) = (left.clone(), 0);
    for (number, step) in recovery.iter().enumerate() {
        medium.take(step);
        if number % every == 0 {
            let disk = TestDisk::on(&medium.cut(Survival::Half { seed: seed + number as u64 }));
            let (store, recovered) = open_on(&disk);
            assert_eq!(recovered.damage, []);
            assert!(Seen::of(&store) == *seen, "after step {number} of the recovery");
            states += 1;
        }
    }
    states
}

fn crash_everywhere(seed: u64, acts: u64, lengths: Lengths, every: u64) {
    let workload = Workload::new(seed, acts, lengths);
    let mut states = 0;
    workload.after_each_step(|number, medium, acknowledged| {
        if !(number + seed).is_multiple_of(every) {
            return;
        }
        let survival = match number / every % 4 {
            0 => Survival::Nothing,
            1 => Survival::Half { seed: number },
            2 => Survival::Most { seed: number },
            _ => Survival::Everything,
        };
        let _seeded = Seeded(seed, format!("{lengths:?}: cut after step {number}, {survival:?}"));
        let is_kill = number / every % 16 == 3;
        let left = if is_kill { medium.clone() } else { medium.cut(survival) };
        let disk = TestDisk::on(&left);
        let (store, seen) = workload.check(&disk, acknowledged);
        states += 1;
        match number / every % 12 {
            0 => states += recover_again(&left, &disk.steps(), &seen, 3, number),
            5 => {
                goes_on(&disk, store, &seen, survival);
                states += 1;
            }
            _ => {}
        }
    });
    let (steps, compacted) = (workload.steps.len(), workload.volumes_compacted);
    println!("SEED={seed}: {states} crash states of {steps} steps, {compacted} compactions");
    assert!(states > 500 && (compacted > 0 || matches!(lengths, Lengths::Short)));
}

#[test]
fn a_power_cut_loses_nothing_of_short_objects() {
    crash_everywhere(seed(), 200, Lengths::Short, 1);
}

#[test]
fn a_power_cut_loses_nothing_while_volumes_fill_and_are_compacted() {
    crash_everywhere(seed(), 350, Lengths::Long, 2);
}
