//! Random workloads, compared with the model.

use haul_testing::{PrintOnPanic, Random, disk_dir, replay_command, seed};

use super::model::Model;
use crate::{BUCKET, big_files, new_store, reopen};

fn run(seed: u64, acts: u32, is_long: bool) {
    let _context = PrintOnPanic(replay_command(seed));
    let mut random = Random(seed);
    let (dir, mut store) = new_store();
    let (mut model, mut compacted, mut older) = (Model::default(), 0, 0);
    for _ in 0..acts {
        let act = model.plan(&mut random, is_long);
        let ids = model.execute(&act, &store).unwrap_or_else(|error| panic!("{act:?}: {error:?}"));
        model.apply(&act, &ids);
        if random.below(20) == 0 {
            model.check(&store, 1 + usize::try_from(random.below(4)).unwrap());
        }
        if random.below(60) == 0 {
            compacted += store.stats().volumes_compacted;
            older = older.max(store.stats().versions);
            match random.below(3) {
                0 => store.close().unwrap(),
                1 => {
                    // Like after a kill, another process opens the files that exist now. A store in
                    // which nothing was stored since it was opened is as it was closed.
                    let is_changed = store.stats().log_records > 0;
                    let copy = crate::sample::copy_of(dir.path());
                    let (copied, recovered) = reopen(copy.path());
                    let expected = (is_changed, Vec::new());
                    assert_eq!((recovered.after_crash, recovered.damage), expected);
                    assert!(recovered.index_rebuilt.is_none());
                    model.check(&copied, 1000);
                    store.close().unwrap();
                }
                _ => {
                    store.close().unwrap();
                    // The whole log is replayed.
                    std::fs::remove_dir_all(dir.path().join("index")).unwrap();
                }
            }
            let (opened, recovered) = reopen(dir.path());
            assert_eq!((recovered.after_crash, recovered.damage), (false, Vec::new()));
            assert_eq!((recovered.orphans_removed, recovered.torn_bytes), (0, 0));
            store = opened;
            model.check(&store, 1000);
            let verified = store.verify(&mut |_, _| {}).unwrap();
            let stats = store.stats();
            assert_eq!(verified.damage, []);
            assert_eq!(verified.objects, stats.objects + stats.versions);
            assert_eq!(big_files(dir.path()).len() as u64, stats.big_files);
        }
    }
    model.check(&store, 1000);
    let copy = disk_dir();
    let copied = store.snapshot(&copy.path().join("copy")).unwrap();
    assert_eq!(copied.objects, store.bucket(BUCKET).unwrap().objects);
    let (copied, recovered) = reopen(&copy.path().join("copy"));
    assert_eq!(recovered.damage, []);
    model.check(&copied, 1000);
    compacted += store.stats().volumes_compacted;
    println!("{acts} acts, {compacted} volumes compacted, up to {older} older versions");
    assert!(older > 0 && (compacted > 0 || !is_long));
}

#[test]
fn random_workloads_with_versions_agree_with_the_model() {
    let seed = seed();
    (0..3).for_each(|n| run(seed + n, 600, false));
}

#[test]
fn random_workloads_with_versions_that_fill_volumes_agree_with_the_model() {
    let seed = seed();
    (0..2).for_each(|n| run(seed + n, 600, true));
}
