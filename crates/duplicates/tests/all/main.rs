//! Tests of searches and actions against the real kernel.
#![expect(clippy::unwrap_used, reason = "test helpers, which may fail like them")]

mod actions;
mod attributes;
mod blocks;
mod concurrent_changes;
mod digest_cache;
mod directories;
mod hard_links;
mod oracle;
mod other_tools;
mod page_cache;
mod permissions;
mod reflinks;
mod regressions;
mod same_file_paths;
mod search;
mod small_differences;
mod sparse_files;
mod two_mounts;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use haul_bulk_read::WalkOptions;
use haul_duplicates::report::Group;
use haul_duplicates::{Error, Events, Options, Phase, find};
use haul_testing::disk_dir;

/// Unordered groups of paths.
type Groups = BTreeSet<BTreeSet<PathBuf>>;

/// Writes files and creates their parent directories.
fn write_all(dir: &Path, files: &[(&str, &[u8])]) {
    for (name, bytes) in files {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// The recorded events of a search, and a hook for the start of phases.
#[derive(Default)]
struct RecordedEvents<'a> {
    failed: Mutex<Vec<String>>,
    /// The bytes to read, per phase.
    read: Mutex<Vec<u64>>,
    at_phase: Option<&'a (dyn Fn(Phase) + Sync)>,
}

impl RecordedEvents<'_> {
    fn failed(&self) -> Vec<String> {
        self.failed.lock().unwrap().clone()
    }

    fn bytes(&self) -> u64 {
        self.read.lock().unwrap().iter().sum()
    }
}

impl Events for RecordedEvents<'_> {
    fn failed(&self, error: Error) {
        self.failed.lock().unwrap().push(error.to_string());
    }

    fn phase(&self, phase: Phase, _items: u64, bytes: u64) {
        self.read.lock().unwrap().push(bytes);
        if let Some(at_phase) = self.at_phase {
            at_phase(phase);
        }
    }
}

/// Returns options that include hidden files.
fn everything() -> WalkOptions<'static> {
    WalkOptions { hidden: true, bytes_min: 1, ..WalkOptions::default() }
}

fn run_search(roots: &[&Path], options: &Options<'_>, events: &RecordedEvents<'_>) -> Vec<Group> {
    let roots: Vec<_> = roots.iter().map(PathBuf::from).collect();
    find(&roots, &everything(), options, events).groups().collect()
}

fn paths(groups: &[Group]) -> Groups {
    let paths = |group: &Group| group.members.iter().map(|member| member.path.clone()).collect();
    groups.iter().map(paths).collect()
}

/// Searches a directory, asserts that nothing failed, and returns the groups.
fn found(dir: &Path, options: &Options<'_>) -> Vec<Group> {
    let events = RecordedEvents::default();
    let groups = run_search(&[dir], options, &events);
    assert_eq!(events.failed(), [""; 0]);
    groups
}
