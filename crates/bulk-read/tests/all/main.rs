//! The walk and the reading against the real kernel.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which may fail like them")]

mod reading;
mod walking;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use haul_bulk_read::{
    Consumer, Error, Finished, Opened, ReadOptions, ReadStats, Skipped, Tree, WalkEvents,
    WalkOptions, Want, read, walk,
};
use tempfile::TempDir;

/// A directory on a disk: the usual temporary directory may well be in memory.
fn disk_dir() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Writes files with that content, with the directories above them.
fn write_all(dir: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = dir.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

/// What a walk told.
#[derive(Debug, Default)]
struct Told {
    failed: Mutex<Vec<Error>>,
    skipped: Mutex<Vec<(PathBuf, Skipped)>>,
    progress: Mutex<(u64, u64)>,
}

impl Told {
    fn skipped(&self) -> Vec<(PathBuf, Skipped)> {
        let mut skipped = self.skipped.lock().unwrap().clone();
        skipped.sort_by(|a, b| a.0.cmp(&b.0));
        skipped
    }

    fn failed(&self) -> Vec<String> {
        self.failed.lock().unwrap().iter().map(ToString::to_string).collect()
    }
}

impl WalkEvents for Told {
    fn failed(&self, error: Error) {
        self.failed.lock().unwrap().push(error);
    }

    fn skipped(&self, path: &Path, why: Skipped) {
        self.skipped.lock().unwrap().push((path.to_path_buf(), why));
    }

    fn progress(&self, files: u64, bytes: u64) {
        let mut progress = self.progress.lock().unwrap();
        *progress = (progress.0.max(files), progress.1.max(bytes));
    }
}

/// Walks sorted, and fails where anything fails.
fn walk_well(roots: &[PathBuf], options: &WalkOptions<'_>) -> Tree {
    let told = Told::default();
    let tree = walk(roots, &WalkOptions { sort: true, ..options.clone() }, &told);
    assert_eq!(told.failed(), Vec::<String>::new());
    tree
}

/// The paths of a tree, without what leads to `dir`.
fn paths(tree: &Tree, dir: &Path) -> Vec<String> {
    let relative = |path: PathBuf| match path.strip_prefix(dir) {
        Ok(relative) => relative.to_str().unwrap().to_owned(),
        Err(_) => path.to_str().unwrap().to_owned(),
    };
    tree.ids().map(|id| relative(tree.path(id))).collect()
}

/// The bytes of a want, and how it ended.
type Ended = (Vec<u8>, Result<Finished, Error>);

/// Keeps everything that is read.
#[derive(Debug, Default)]
struct Collected {
    wants: Mutex<BTreeMap<usize, Ended>>,
    opened: Mutex<BTreeMap<usize, Opened>>,
}

impl Consumer for Collected {
    type State = Vec<u8>;

    fn begin(&self, want: usize, opened: &Opened) -> Vec<u8> {
        self.opened.lock().unwrap().insert(want, opened.clone());
        Vec::new()
    }

    fn piece(&self, state: &mut Vec<u8>, _want: usize, bytes: &[u8]) -> ControlFlow<()> {
        state.extend_from_slice(bytes);
        ControlFlow::Continue(())
    }

    fn end(&self, state: Option<Vec<u8>>, want: usize, outcome: Result<Finished, Error>) {
        let before = self.wants.lock().unwrap().insert(want, (state.unwrap_or_default(), outcome));
        assert!(before.is_none(), "want {want} ends twice");
    }
}

impl Collected {
    fn bytes(&self, want: usize) -> Vec<u8> {
        self.wants.lock().unwrap()[&want].0.clone()
    }

    fn outcome(&self, want: usize) -> Result<Finished, Error> {
        self.wants.lock().unwrap()[&want].1.clone()
    }
}

/// Reads all files whole.
fn read_whole(tree: &Tree, options: &ReadOptions<'_>) -> (Collected, ReadStats) {
    let wants: Vec<_> = tree.ids().map(Want::whole).collect();
    let collected = Collected::default();
    let stats = read(tree, &wants, options, &collected);
    assert_eq!(collected.wants.lock().unwrap().len(), wants.len());
    (collected, stats)
}
