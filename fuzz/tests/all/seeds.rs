//! Runs the targets on their seeds, without libFuzzer.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use haul_fuzz::TARGETS;

const SEED_BYTES_MAX: u64 = 4096;
const SEEDS_MAX: usize = 20;

fn entries(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort_unstable();
    paths
}

fn names(paths: &[PathBuf]) -> BTreeSet<&str> {
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    let names = paths.iter().map(name).filter(|name| !name.starts_with('.'));
    names.map(|name| &*name.leak()).collect()
}

#[test]
fn targets_pass_their_seeds() {
    let mut failed = Vec::new();
    for (name, target) in TARGETS {
        let seeds = entries(&format!("seeds/{name}"));
        assert!((1..=SEEDS_MAX).contains(&seeds.len()), "{name}: {} seeds", seeds.len());
        for seed in seeds {
            let bytes = fs::read(&seed).unwrap();
            assert!(bytes.len() as u64 <= SEED_BYTES_MAX, "{}", seed.display());
            let passes = std::panic::catch_unwind(|| target(&bytes)).is_ok();
            if !passes {
                failed.push(format!("{name} fails on {}", seed.display()));
            }
        }
        // Inputs of libFuzzer can be empty.
        target(b"");
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn seeds_and_dictionaries_belong_to_targets() {
    let targets: BTreeSet<&str> = TARGETS.iter().map(|target| target.0).collect();
    assert!(TARGETS.is_sorted_by(|one, next| one.0 < next.0));
    assert_eq!(names(&entries("seeds")), targets);
    for dictionary in names(&entries("dictionaries")) {
        let beginning = dictionary.strip_suffix(".dict").unwrap();
        let is_used = targets.iter().any(|name| {
            *name == beginning || name.split_once('_').is_some_and(|(first, _)| first == beginning)
        });
        assert!(is_used, "{dictionary}");
    }
}
