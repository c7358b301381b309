//! The search and the actions against the real kernel.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests, which may fail like them, and tell their seed"
)]

mod acting;
mod adversary;
mod caching;
mod differences;
mod directories;
mod doubles;
mod finding;
mod hard_links;
mod holes;
mod mistakes;
mod oracle;
mod page_cache;
mod random;
mod reflinks;
mod rivals;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use haul_bulk_read::WalkOptions;
use haul_duplicates::report::Group;
use haul_duplicates::{Error, Events, Options, Phase, find};
use tempfile::TempDir;

/// Groups of paths, in no order.
type Groups = BTreeSet<BTreeSet<PathBuf>>;

/// A directory on a disk: the usual temporary directory may well be in memory.
fn disk_dir() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Writes files with that content, with the directories above them.
fn write_all(dir: &Path, files: &[(&str, &[u8])]) {
    for (name, bytes) in files {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// What a search told, and what is to happen when a phase begins.
#[derive(Default)]
struct Told<'a> {
    failed: Mutex<Vec<String>>,
    /// How many bytes each phase that reads set out to read.
    read: Mutex<Vec<u64>>,
    at_phase: Option<&'a (dyn Fn(Phase) + Sync)>,
}

impl Told<'_> {
    fn failed(&self) -> Vec<String> {
        self.failed.lock().unwrap().clone()
    }

    fn bytes(&self) -> u64 {
        self.read.lock().unwrap().iter().sum()
    }
}

impl Events for Told<'_> {
    fn failed(&self, error: Error) {
        self.failed.lock().unwrap().push(error.to_string());
    }

    fn phase(&self, phase: Phase, _things: u64, bytes: u64) {
        self.read.lock().unwrap().push(bytes);
        if let Some(at_phase) = self.at_phase {
            at_phase(phase);
        }
    }
}

/// Everything there is, hidden or not.
fn everything() -> WalkOptions<'static> {
    WalkOptions { hidden: true, bytes_min: 1, ..WalkOptions::default() }
}

fn search(roots: &[&Path], options: &Options<'_>, told: &Told<'_>) -> Vec<Group> {
    let roots: Vec<_> = roots.iter().map(PathBuf::from).collect();
    find(&roots, &everything(), options, told).groups().collect()
}

fn paths(groups: &[Group]) -> Groups {
    let paths = |group: &Group| group.members.iter().map(|member| member.path.clone()).collect();
    groups.iter().map(paths).collect()
}

/// The groups below a directory, found without a single complaint.
fn found(dir: &Path, options: &Options<'_>) -> Vec<Group> {
    let told = Told::default();
    let groups = search(&[dir], options, &told);
    assert_eq!(told.failed(), [""; 0]);
    groups
}
