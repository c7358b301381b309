//! Crashes after every step of a workload, and after every step of the recovery.

use std::sync::Arc;

use haul_disk::{Disk, Open, read_full, write_full};
use haul_disk_sim::{Crash, Crashes, Medium, MemoryDisk, Survival, crash_everywhere, crash_until};
use haul_file_store::{
    Attributes, Error, ListRequest, Options, Precondition, RecoveryReport, Store,
};
use haul_testing::{PrintOnPanic, Random};

use crate::contents::Contents;
use crate::script::{Act, Model};
use crate::script_inputs::Lengths;
use crate::small;

pub(crate) fn open_on(disk: &MemoryDisk) -> (Store, RecoveryReport) {
    Store::open_on(Arc::new(disk.clone()), small()).unwrap()
}

/// Opens a store with the smallest volumes: recovery reads all of the current one.
fn open_smallest_on(disk: &MemoryDisk) -> (Store, RecoveryReport) {
    let options = Options { volume_bytes: 2 << 20, ..small() };
    Store::open_on(Arc::new(disk.clone()), options).unwrap()
}

/// The acts of a workload, and the expected states of the store.
struct Workload {
    /// The states before each act and after the last one.
    models: Vec<Model>,
    acts: Vec<Act>,
    volumes_compacted: u64,
}

/// The number of acknowledged acts of the workload.
struct Acknowledged(usize);

/// The content of the store when it was reopened.
struct RecoveredContents(Contents);

/// A key that was stored in the bucket [`AFTERWARDS`] after the recovery.
struct Stored(String);

const AFTERWARDS: &str = "afterwards";

impl Workload {
    fn run(disk: &MemoryDisk, seed: u64, acts: usize, lengths: Lengths) -> Self {
        let (mut store, mut random) = (open_smallest_on(disk).0, Random(seed));
        let models = vec![Model::default()];
        let mut workload = Self { models, acts: Vec::new(), volumes_compacted: 0 };
        for number in 1..=acts {
            let mut model = workload.models.last().unwrap().clone();
            let act = model.plan(&mut random, lengths);
            let started = model.execute(&act, &store).unwrap();
            model.apply(&act, started);
            disk.note(Acknowledged(number));
            if number % 16 == 0 {
                disk.note(OldIndex::of(disk));
            }
            workload.models.push(model);
            workload.acts.push(act);
            if random.below(40) == 0 {
                workload.volumes_compacted += store.stats().volumes_compacted;
                store.close().unwrap();
                store = open_smallest_on(disk).0;
            }
        }
        workload.volumes_compacted += store.stats().volumes_compacted;
        workload
    }

    /// Checks that all acknowledged acts are in effect, and the act in progress completely or not
    /// at all. The content found by the first recovery, and objects stored since, must stay.
    fn check(&self, crash: &Crash, mut seen: Contents, store: &Store) -> Contents {
        let stored: Vec<&Stored> = crash.notes().collect();
        for Stored(key) in &stored {
            let object = store.get(AFTERWARDS, key).unwrap();
            assert_eq!(&object.read(0, 10).unwrap()[..], b"bytes");
        }
        let more = seen.take_bucket(AFTERWARDS);
        assert!(more <= stored.len() + 1, "{more} objects exist, {} were stored", stored.len());
        if let Some(RecoveredContents(before)) = crash.notes().last() {
            assert!(seen == *before, "the recovered content changed");
        } else {
            let acknowledged = crash.notes().last().map_or(0, |Acknowledged(acts)| *acts);
            let act = self.acts.get(acknowledged);
            let model = &self.models[acknowledged];
            assert!(model.allows_crash(act, &seen), "after {acknowledged}, in {act:?}");
        }
        seen
    }

    /// Reopens the store, checks its content, and stores another object.
    fn recover(&self, crash: &Crash) {
        let derived = lose_derived_files(crash);
        let _context = PrintOnPanic(format!("{derived:?}"));
        let (mut store, mut recovered) = open_smallest_on(&crash.disk);
        if has_damaged_run(&store) {
            // If a run was truncated and the truncation was not synced, the next crash can leave
            // the length without the bytes. A listing detects that, and reopening the store repairs
            // it.
            assert!(
                !derived.keeps_index() || crash.notes::<RecoveredContents>().count() > 0,
                "{recovered:?}"
            );
            store.close().unwrap();
            (store, recovered) = open_smallest_on(&crash.disk);
        }
        // The second crash may restore the files that were truncated after the first one.
        let is_first = crash.notes::<RecoveredContents>().count() == 0;
        let is_usable = recovered.index_rebuilt.is_none();
        assert!(is_usable || !is_first || !derived.keeps_index(), "{recovered:?}");
        // One copy of the manifest may be lost.
        recovered.damage.retain(|damage| !damage.what.contains("this copy of the manifest"));
        assert_eq!(recovered.damage, [], "a power cut is not damage");
        let seen = self.check(crash, Contents::of(&store), &store);
        let files = crash.disk.list("objects").unwrap().len() as u64;
        assert_eq!(files, store.stats().big_files, "unexpected or missing files");
        crash.disk.note(RecoveredContents(seen));
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

/// Returns `true` if a listing finds a damaged run.
fn has_damaged_run(store: &Store) -> bool {
    let whole = ListRequest { limit: usize::MAX, ..ListRequest::default() };
    let buckets = store.buckets().unwrap();
    buckets.iter().any(|bucket| match store.list(&bucket.name, &whole) {
        Err(Error::Damaged { file, .. }) => file.starts_with("memory/index"),
        listed => listed.map(|_| false).unwrap(),
    })
}

/// The loss of derived files in addition to a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Derived {
    Whole,
    VolumeIndexesLost,
    VolumeIndexesTorn,
    ManifestCopyLost,
    CatalogLost,
    IndexLost,
    IndexTorn,
    IndexOld,
}

impl Derived {
    const ALL: [Self; 8] = [
        Self::Whole,
        Self::VolumeIndexesLost,
        Self::VolumeIndexesTorn,
        Self::ManifestCopyLost,
        Self::CatalogLost,
        Self::IndexLost,
        Self::IndexTorn,
        Self::IndexOld,
    ];

    fn keeps_index(self) -> bool {
        let kept = [Self::Whole, Self::VolumeIndexesLost, Self::VolumeIndexesTorn];
        kept.contains(&self) || self == Self::ManifestCopyLost
    }
}

/// Removes, truncates or replaces derived files, which are not needed while the volumes are intact.
/// The next power cut may restore some of them in an old state.
fn lose_derived_files(crash: &Crash) -> Derived {
    let acknowledged = crash.notes().last().map_or(0, |Acknowledged(acts)| *acts);
    let number = acknowledged + crash.notes::<Stored>().count();
    let derived = Derived::ALL[number % Derived::ALL.len()];
    let disk = &crash.disk;
    let files = |dir: &str| -> Vec<String> {
        let names = disk.list(dir).unwrap_or_default();
        names.into_iter().map(|name| format!("{dir}/{name}")).collect()
    };
    let cut = |name: &String| {
        let file = disk.open(name, Open::default()).unwrap();
        file.resize(file.bytes().unwrap() / 2).unwrap();
    };
    let is_volume_file = |name: &&String| {
        name.ends_with(".index")
            && disk.open(&name.replace(".index", ".segment"), Open::default()).is_ok()
    };
    match derived {
        Derived::Whole => {}
        Derived::VolumeIndexesLost => {
            files("volumes")
                .iter()
                .filter(is_volume_file)
                .for_each(|name| disk.remove(name).unwrap());
        }
        Derived::VolumeIndexesTorn => {
            files("volumes").iter().filter(|name| name.ends_with(".index")).for_each(cut);
        }
        // The copies may not exist yet.
        Derived::ManifestCopyLost => drop(disk.remove("MANIFEST.copy").ok()),
        Derived::CatalogLost => drop(disk.remove("index/CATALOG").ok()),
        Derived::IndexLost => {
            files("index").iter().for_each(|name| disk.remove(name).unwrap());
        }
        Derived::IndexTorn => {
            let files = files("index");
            files.iter().skip(number / 8 % files.len().max(1)).take(1).for_each(cut);
        }
        Derived::IndexOld => {
            if let Some(OldIndex(old)) = crash.notes().last() {
                files("index").iter().for_each(|name| disk.remove(name).unwrap());
                for (name, bytes) in old {
                    let file = disk.create(name, Open::default()).unwrap();
                    write_full(&*file, bytes, 0).unwrap();
                }
            }
        }
    }
    derived
}

/// All files of the index at some time before the crash.
struct OldIndex(Vec<(String, Vec<u8>)>);

impl OldIndex {
    fn of(disk: &MemoryDisk) -> Self {
        let read = |name: String| {
            let name = format!("index/{name}");
            let file = disk.open(&name, Open::default()).ok()?;
            let mut bytes = vec![0; usize::try_from(file.bytes().ok()?).unwrap()];
            read_full(&*file, &mut bytes, 0).ok()?;
            Some((name, bytes))
        };
        Self(disk.list("index").unwrap().into_iter().filter_map(read).collect())
    }
}

/// Calls `crash` with other seeds until it returns that volumes were compacted. Whether a workload
/// compacts a volume depends on its random acts, and on when the background thread runs.
pub(crate) fn until_compacted(crashes: &Crashes, crash: impl Fn(&Crashes) -> u64) {
    let seeds = (0..100).map(|round| crashes.seed.wrapping_add(round << 32));
    let mut compacted = seeds.map(|seed| crash(&Crashes { seed, ..crashes.clone() }));
    assert!(compacted.any(|volumes| volumes > 0), "no volume was compacted");
}

/// Crashes workloads with this number of acts. Returns the number of compacted volumes.
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

/// Regression test: a process was killed between creating the marker and syncing its name. The next
/// process found the marker and did not sync the name, so a power cut removed the marker, and the
/// directory was no longer a store.
#[test]
fn store_of_a_killed_creator_survives_the_next_power_cut() {
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

/// The manifest is durable before the marker, so a new store never seems to have lost it.
#[test]
fn crash_while_a_store_is_created_leaves_no_damage() {
    let disk = MemoryDisk::default();
    drop(open_on(&disk));
    let mut medium = Medium::default();
    for step in disk.steps() {
        medium.apply_step(&step);
        let halves = (0..8).map(|seed| Survival::Half { seed });
        for survival in halves.chain([Survival::Nothing, Survival::Everything]) {
            let left = MemoryDisk::on(&medium.cut(survival));
            let (store, recovered) = open_on(&left);
            assert_eq!(recovered.damage, [], "{step:?}, {survival:?}");
            store.create_bucket("bucket").unwrap();
        }
    }
}

#[test]
fn crash_loses_no_acknowledged_short_objects() {
    let crashes = Crashes { draws: 3, again_one_in: 16, ..Crashes::default() };
    crash_in(2000, &crashes, 100, Lengths::Short);
}

#[test]
fn crash_during_compaction_loses_no_acknowledged_objects() {
    let crashes = Crashes { draws: 1, all_up_to: 4, again_one_in: 16, ..Crashes::default() };
    until_compacted(&crashes, |crashes| crash_in(2500, crashes, 300, Lengths::Long));
}
