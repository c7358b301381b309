//! The machine stops after any step of a workload, and after steps of the recovery from it.

use std::sync::Arc;

use haul_disk::{Disk, Open};
use haul_disk_sim::{Crash, Crashes, Medium, MemoryDisk, Survival, crash_everywhere, crash_until};
use haul_file_store::{Attributes, Error, Precondition, Recovered, Store};
use haul_testing::Random;

use crate::script::{Act, Lengths, Model, Seen};
use crate::small;

pub(crate) fn open_on(disk: &MemoryDisk) -> (Store, Recovered) {
    Store::open_on(Arc::new(disk.clone()), small()).unwrap()
}

/// What a workload did, and what the store must hold in between.
struct Workload {
    /// Before each act and after the last.
    models: Vec<Model>,
    acts: Vec<Act>,
    volumes_compacted: u64,
}

/// So many acts of the workload are acknowledged.
struct Acknowledged(usize);

/// What was there when the store was opened again.
struct Found(Seen);

/// This was stored in the bucket [`AFTERWARDS`] since.
struct Stored(String);

const AFTERWARDS: &str = "afterwards";

impl Workload {
    fn run(disk: &MemoryDisk, seed: u64, acts: usize, lengths: Lengths) -> Self {
        let (mut store, mut random) = (open_on(disk).0, Random(seed));
        let models = vec![Model::default()];
        let mut workload = Self { models, acts: Vec::new(), volumes_compacted: 0 };
        for number in 1..=acts {
            let mut model = workload.models.last().unwrap().clone();
            let act = model.plan(&mut random, lengths);
            let started = model.carry_out(&act, &store).unwrap();
            model.apply(&act, started);
            disk.note(Acknowledged(number));
            workload.models.push(model);
            workload.acts.push(act);
            if random.below(40) == 0 {
                workload.volumes_compacted += store.stats().volumes_compacted;
                store.close().unwrap();
                store = open_on(disk).0;
            }
        }
        workload.volumes_compacted += store.stats().volumes_compacted;
        workload
    }

    /// All acknowledged acts hold, and of the one that was under way all or nothing. What was
    /// found once stays, and so does what was stored since.
    fn check(&self, crash: &Crash, mut seen: Seen, store: &Store) -> Seen {
        let stored: Vec<&Stored> = crash.notes().collect();
        for Stored(key) in &stored {
            let object = store.get(AFTERWARDS, key).unwrap();
            assert_eq!(&object.read(0, 10).unwrap()[..], b"bytes");
        }
        let more = seen.take_bucket(AFTERWARDS);
        assert!(more <= stored.len() + 1, "{more} are there of {}", stored.len());
        if let Some(Found(before)) = crash.notes().last() {
            assert!(seen == *before, "what was found does not stay");
        } else {
            let acknowledged = crash.notes().last().map_or(0, |Acknowledged(acts)| *acts);
            let act = self.acts.get(acknowledged);
            let model = &self.models[acknowledged];
            assert!(model.allows(act, &seen), "after {acknowledged}, in {act:?}");
        }
        seen
    }

    /// Opens the store again, looks at all of it, and goes on.
    fn recover(&self, crash: &Crash) {
        lose_derived_files(crash);
        let (store, mut recovered) = open_on(&crash.disk);
        // One copy of the manifest may be lost.
        recovered.damage.retain(|damage| !damage.what.contains("this copy of the manifest"));
        assert_eq!(recovered.damage, [], "a power cut is not damage");
        let seen = self.check(crash, Seen::of(&store), &store);
        let files = crash.disk.list("objects").unwrap().len() as u64;
        assert_eq!(files, store.stats().big_files, "files too many or too few");
        crash.disk.note(Found(seen));
        match store.create_bucket(AFTERWARDS) {
            Ok(()) | Err(Error::BucketExists { .. }) => {}
            Err(other) => panic!("{other:?}"),
        }
        let key = format!("key {}", crash.notes::<Stored>().count());
        let none = Attributes::new();
        store.put(AFTERWARDS, &key, b"bytes", &none, &Precondition::None).unwrap();
        crash.disk.note(Stored(key));
    }
}

/// Removes or cuts files that only say what damage hides: without damage nothing depends on them.
/// After the next power cut some of them are back, as old ones.
fn lose_derived_files(crash: &Crash) {
    let acknowledged = crash.notes().last().map_or(0, |Acknowledged(acts)| *acts);
    let how = acknowledged + crash.notes::<Stored>().count();
    let disk = &crash.disk;
    let names = disk.list("volumes").unwrap_or_default();
    for name in names.iter().filter(|name| name.ends_with(".index")) {
        let name = format!("volumes/{name}");
        let is_of_volume = disk.open(&name.replace(".index", ".segment"), Open::default()).is_ok();
        match how % 4 {
            1 if is_of_volume => disk.remove(&name).unwrap(),
            2 => {
                let file = disk.open(&name, Open::default()).unwrap();
                file.resize(file.bytes().unwrap() / 2).unwrap();
            }
            _ => {}
        }
    }
    if how % 4 == 3 {
        // It may not exist yet.
        disk.remove("MANIFEST.copy").ok();
    }
}

/// Crashes workloads of so many acts; gives how many volumes they compacted.
fn crash_in(least: u64, crashes: &Crashes, acts: usize, lengths: Lengths) -> u64 {
    let mut compacted = 0;
    crash_until(least, crashes, |crashes| {
        let workload = |disk: &MemoryDisk| {
            let workload = Workload::run(disk, crashes.seed, acts, lengths);
            compacted += workload.volumes_compacted;
            workload
        };
        crash_everywhere(crashes, workload, Workload::recover)
    });
    compacted
}

/// A store was killed between the name of its marker and the sync of that name; the next process
/// saw it, took it for granted, and lost it with the power. What it had stored by then was in a
/// directory that was no store.
#[test]
fn a_store_whose_maker_was_killed_is_one_after_the_next_power_cut_too() {
    let disk = MemoryDisk::default();
    drop(open_on(&disk));
    let (mut medium, none) = (Medium::default(), Attributes::new());
    for step in disk.steps() {
        medium.apply_step(&step);
        let killed = MemoryDisk::on(&medium);
        let (store, _) = open_on(&killed);
        store.create_bucket("bucket").unwrap();
        store.put("bucket", "key", b"bytes", &none, &Precondition::None).unwrap();
        let left = killed.medium().cut(Survival::Nothing);
        drop(store);
        let (store, _) = open_on(&MemoryDisk::on(&left));
        assert_eq!(store.stat("bucket", "key").unwrap().bytes, 5, "killed after {step:?}");
    }
}

#[test]
fn a_crash_loses_nothing_of_short_objects() {
    let crashes = Crashes { draws: 3, again_one_in: 16, ..Crashes::default() };
    crash_in(20_000, &crashes, 100, Lengths::Short);
}

#[test]
fn a_crash_loses_nothing_while_volumes_fill_and_are_compacted() {
    let crashes = Crashes { draws: 1, all_up_to: 4, again_one_in: 16, ..Crashes::default() };
    let compacted = crash_in(25_000, &crashes, 300, Lengths::Long);
    assert!(compacted > 0, "nothing was compacted");
}
