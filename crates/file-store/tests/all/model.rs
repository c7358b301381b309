//! Random workloads, compared with a model.

use std::path::Path;

use haul_file_store::Store;
use haul_testing::{PrintOnPanic, Random, replay_command, seed};

use crate::contents::Contents;
use crate::get_many::agrees_with_get;
use crate::script::Model;
use crate::script_inputs::Lengths;
use crate::{big_files, disk_dir, list, reopen};

/// Checks that the content of the store equals the model, and that it has no unexpected or missing
/// files.
fn check(model: &Model, store: &Store, dir: &Path) {
    assert!(Contents::of(store) == model.seen(), "the store differs from the model");
    for bucket in store.buckets().unwrap() {
        let mut keys: Vec<String> =
            list(store, &bucket.name).into_iter().map(|info| info.key).collect();
        keys.push("absent".to_owned());
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        agrees_with_get(store, &bucket.name, &keys);
    }
    assert_eq!(big_files(dir).len() as u64, store.stats().big_files);
    let verified = store.verify(&mut |_, _| {}).unwrap();
    assert_eq!((verified.objects, verified.damage), (store.stats().objects, Vec::new()));
}

fn run(seed: u64, acts: u32, lengths: Lengths) {
    let _context = PrintOnPanic(format!("{lengths:?}\n{}", replay_command(seed)));
    let mut random = Random(seed);
    let dir = disk_dir();
    let (mut store, mut model) = (reopen(dir.path()).0, Model::default());
    let (mut restarts, mut compacted) = (0, 0);
    for _ in 0..acts {
        let act = model.plan(&mut random, lengths);
        let started = model.execute(&act, &store).unwrap_or_else(|e| panic!("{act:?}: {e:?}"));
        model.apply(&act, started);
        if random.below(100) == 0 {
            restarts += 1;
            compacted += store.stats().volumes_compacted;
            let closed = random.below(2) == 0;
            if closed {
                store.close().unwrap();
            } else {
                // Like after a kill, another process opens the files that exist now. A store in which
                // nothing was stored since it was opened is as it was closed.
                let is_changed = store.stats().log_records > 0;
                let copy = crate::sample::copy_of(dir.path());
                let (copied, recovered) = reopen(copy.path());
                assert_eq!((recovered.after_crash, recovered.damage), (is_changed, Vec::new()));
                assert!(recovered.index_rebuilt.is_none());
                check(&model, &copied, copy.path());
                drop(store);
            }
            let (opened, recovered) = reopen(dir.path());
            assert_eq!((recovered.after_crash, recovered.damage), (false, Vec::new()));
            assert!(recovered.index_rebuilt.is_none());
            assert_eq!((recovered.orphans_removed, recovered.torn_bytes), (0, 0));
            store = opened;
            check(&model, &store, dir.path());
        }
    }
    check(&model, &store, dir.path());
    compacted += store.stats().volumes_compacted;
    println!("{acts} acts, {restarts} restarts, {compacted} volumes compacted");
}

#[test]
fn random_workloads_of_short_objects_agree_with_the_model() {
    let seed = seed();
    (0..2).for_each(|n| run(seed + n, 800, Lengths::Short));
}

#[test]
fn random_workloads_that_fill_volumes_agree_with_the_model() {
    let seed = seed();
    (0..2).for_each(|n| run(seed + n, 500, Lengths::Long));
}
