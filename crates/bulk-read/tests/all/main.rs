//! Tests of walks and reads against the real kernel.
#![expect(clippy::unwrap_used, reason = "test helpers")]

mod changed_files;
mod digest_cache;
mod read;
mod sparse;
mod special_files;
mod uncached;
mod walk;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use haul_bulk_read::{
    Consumer, Error, FileStatus, ReadOptions, ReadRequest, ReadStats, ReadSummary, SkipReason,
    Tree, WalkEvents, WalkOptions, read, walk,
};
use haul_testing::{disk_dir, noise};

/// Writes files and creates their parent directories.
fn write_all(dir: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = dir.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

/// The recorded events of a walk.
#[derive(Debug, Default)]
struct RecordedEvents {
    failed: Mutex<Vec<Error>>,
    skipped: Mutex<Vec<(PathBuf, SkipReason)>>,
    progress: Mutex<(u64, u64)>,
}

impl RecordedEvents {
    fn skipped(&self) -> Vec<(PathBuf, SkipReason)> {
        let mut skipped = self.skipped.lock().unwrap().clone();
        skipped.sort_by(|a, b| a.0.cmp(&b.0));
        skipped
    }

    fn failed(&self) -> Vec<String> {
        self.failed.lock().unwrap().iter().map(ToString::to_string).collect()
    }
}

impl WalkEvents for RecordedEvents {
    fn failed(&self, error: Error) {
        self.failed.lock().unwrap().push(error);
    }

    fn skipped(&self, path: &Path, reason: SkipReason) {
        self.skipped.lock().unwrap().push((path.to_path_buf(), reason));
    }

    fn progress(&self, files: u64, bytes: u64) {
        let mut progress = self.progress.lock().unwrap();
        *progress = (progress.0.max(files), progress.1.max(bytes));
    }
}

/// Walks with sorting and asserts that nothing failed.
fn walk_ok(roots: &[PathBuf], options: &WalkOptions<'_>) -> Tree {
    let events = RecordedEvents::default();
    let tree = walk(roots, &WalkOptions { sort: true, ..options.clone() }, &events);
    assert_eq!(events.failed(), Vec::<String>::new());
    tree
}

/// Returns the paths of a tree, relative to `dir`.
fn paths(tree: &Tree, dir: &Path) -> Vec<String> {
    let relative = |path: PathBuf| match path.strip_prefix(dir) {
        Ok(relative) => relative.to_str().unwrap().to_owned(),
        Err(_) => path.to_str().unwrap().to_owned(),
    };
    tree.ids().map(|id| relative(tree.path(id))).collect()
}

/// The bytes of a request and its result.
type RequestOutcome = (Vec<u8>, Result<ReadSummary, Error>);

/// A consumer that collects the bytes and the result of each request.
#[derive(Debug, Default)]
struct Collected {
    requests: Mutex<BTreeMap<usize, RequestOutcome>>,
    statuses: Mutex<BTreeMap<usize, FileStatus>>,
}

impl Consumer for Collected {
    type State = Vec<u8>;

    fn begin(&self, request: usize, file: &FileStatus) -> Vec<u8> {
        self.statuses.lock().unwrap().insert(request, file.clone());
        Vec::new()
    }

    fn piece(&self, state: &mut Vec<u8>, _request: usize, bytes: &[u8]) -> ControlFlow<()> {
        state.extend_from_slice(bytes);
        ControlFlow::Continue(())
    }

    fn end(&self, state: Option<Vec<u8>>, request: usize, outcome: Result<ReadSummary, Error>) {
        let before =
            self.requests.lock().unwrap().insert(request, (state.unwrap_or_default(), outcome));
        assert!(before.is_none(), "request {request} ended twice");
    }
}

impl Collected {
    fn bytes(&self, request: usize) -> Vec<u8> {
        self.requests.lock().unwrap()[&request].0.clone()
    }

    fn outcome(&self, request: usize) -> Result<ReadSummary, Error> {
        self.requests.lock().unwrap()[&request].1.clone()
    }
}

/// Reads all files completely.
fn read_whole(tree: &Tree, options: &ReadOptions<'_>) -> (Collected, ReadStats) {
    let requests: Vec<_> = tree.ids().map(ReadRequest::whole).collect();
    let collected = Collected::default();
    let stats = read(tree, &requests, options, &collected);
    assert_eq!(collected.requests.lock().unwrap().len(), requests.len());
    (collected, stats)
}
