//! `haul bench log`.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use haul_bench::log::{Options, RIVALS_PROGRAM, run as measure};

use super::measured;
use crate::args::BenchLogArgs;
use crate::report::Result;

pub(super) fn run(args: &BenchLogArgs) -> Result {
    let options = Options {
        dir: args.dir.clone(),
        writers: args.writers.clone(),
        record_bytes: args.sizes.clone(),
        rounds: args.rounds,
        measure: args.seconds,
        rivals: args.rivals.clone().or_else(rivals_program),
        all_forms: args.all_forms,
        rotations: args.rotations,
        recovery_bytes: args.recovery,
    };
    measured("log", &args.report, |watcher| measure(&options, watcher))
}

/// The program that drives the rivals, where it is found.
pub(super) fn rivals_program() -> Option<PathBuf> {
    let beside = env::current_exe().ok();
    find(beside.as_deref().and_then(Path::parent), &env::var_os("PATH").unwrap_or_default())
}

/// The program that drives the rivals: `beside` this one, else in one of the directories of `path`.
fn find(beside: Option<&Path>, path: &OsStr) -> Option<PathBuf> {
    let dirs = beside.map(Path::to_path_buf).into_iter().chain(env::split_paths(path));
    dirs.map(|dir| dir.join(RIVALS_PROGRAM)).find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rivals_are_found_beside_this_program_before_those_on_the_path() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["one", "two", "three"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        let path = env::join_paths([at("one"), at("two")]).unwrap();
        assert_eq!(find(Some(&at("three")), &path), None);
        for (name, expected) in [("two", "two"), ("one", "one"), ("three", "three")] {
            std::fs::write(at(name).join(RIVALS_PROGRAM), "").unwrap();
            let found = find(Some(&at("three")), &path);
            assert_eq!(found, Some(at(expected).join(RIVALS_PROGRAM)));
        }
    }
}
