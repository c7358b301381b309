//! Tests against the page cache of the real kernel.
#![expect(clippy::unwrap_used, reason = "test helpers")]

mod find;
mod load;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use haul_page_cache::{Files, FilesEvents};

/// The recorded events of a search for files.
#[derive(Debug, Default)]
struct Found {
    failed: Mutex<Vec<String>>,
    not_files: Mutex<Vec<PathBuf>>,
}

impl FilesEvents for Found {
    fn failed(&self, error: haul_bulk_read::Error) {
        self.failed.lock().unwrap().push(error.to_string());
    }

    fn not_a_file(&self, path: &Path) {
        self.not_files.lock().unwrap().push(path.to_owned());
    }
}

/// Finds files, and asserts that nothing failed.
fn find(paths: &[PathBuf]) -> Files<'_> {
    let events = Found::default();
    let files = Files::find(paths, false, &events);
    assert_eq!(*events.failed.lock().unwrap(), [""; 0]);
    files
}

/// Writes a file and syncs it, so that its pages can be evicted.
fn write_synced(path: &Path, bytes: usize) {
    std::fs::write(path, haul_testing::noise(1, bytes)).unwrap();
    File::open(path).unwrap().sync_all().unwrap();
}
