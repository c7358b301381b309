//! Tests that files are loaded and evicted completely, and that limits are obeyed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use haul_disk::{FileSystem, probe};
use haul_page_cache::{
    Evicted, Files, PageCounts, Remaining, WarmEvents, WarmOptions, Warmed, page_bytes,
};
use haul_testing::{disk_dir, skip};
use tempfile::TempDir;

use crate::{find, write_synced};

/// The recorded events of loading.
#[derive(Debug, Default)]
struct Events {
    is_stopped: bool,
    begun: Mutex<Vec<(u64, u64)>>,
    read: Mutex<Vec<u64>>,
    ended: Mutex<u32>,
    failed: Mutex<Vec<PathBuf>>,
}

impl WarmEvents for Events {
    fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    fn begin_reads(&self, files: u64, bytes: u64) {
        self.begun.lock().unwrap().push((files, bytes));
    }

    fn file_read(&self, bytes: u64) {
        self.read.lock().unwrap().push(bytes);
    }

    fn end_reads(&self) {
        *self.ended.lock().unwrap() += 1;
    }

    fn failed(&self, error: &haul_disk::Error) {
        self.failed.lock().unwrap().push(error.path.clone());
    }
}

impl Events {
    fn read(&self) -> Vec<u64> {
        let mut read = self.read.lock().unwrap().clone();
        read.sort_unstable();
        read
    }
}

/// The lengths of the files: also one of several pieces, of which each reader has at most 16 MiB in
/// flight.
const LENGTHS: [usize; 5] = [0, 1, 5000, 1 << 20, (18 << 20) + 1];

fn make() -> (TempDir, [PathBuf; 1]) {
    let dir = disk_dir();
    for (number, bytes) in LENGTHS.iter().enumerate() {
        write_synced(&dir.path().join(number.to_string()), *bytes);
    }
    let paths = [dir.path().to_owned()];
    (dir, paths)
}

fn evict(files: &Files<'_>) -> Evicted {
    let mut failed = Vec::new();
    let evicted = Evicted::run(files, true, |error| failed.push(error.to_string()));
    assert_eq!(failed, [""; 0]);
    evicted
}

fn bytes() -> u64 {
    LENGTHS.iter().sum::<usize>() as u64
}

fn pages() -> u64 {
    LENGTHS.iter().map(|bytes| (*bytes as u64).div_ceil(page_bytes())).sum()
}

#[test]
fn evicted_files_are_loaded_completely() {
    let (_dir, paths) = make();
    let files = find(&paths);
    for rotates in [Some(true), Some(false), None] {
        let evicted = evict(&files);
        let before = PageCounts { files: 5, bytes: bytes(), pages: pages(), ..evicted.before };
        assert_eq!(evicted.before, before);
        assert_eq!(evicted.after.resident, 0);
        assert_eq!((evicted.remaining, evicted.in_memory), (Remaining::default(), 0));

        let events = Events::default();
        let warmed = Warmed::run(&files, &WarmOptions { rotates, bytes_max: None }, &events);
        assert_eq!((warmed.before, warmed.after.missing()), (evicted.after, 0));
        assert!((1..u64::MAX).contains(&warmed.bytes_max), "the available memory");
        assert_eq!(*events.begun.lock().unwrap(), [(4, bytes())], "one file is empty");
        assert_eq!(events.read(), LENGTHS[1..].iter().map(|it| *it as u64).collect::<Vec<_>>());
        assert_eq!(*events.ended.lock().unwrap(), 1);
        assert_eq!(*events.failed.lock().unwrap(), [""; 0].map(PathBuf::from));
    }
}

#[test]
fn limit_stops_within_a_file() {
    let (_dir, paths) = make();
    let files = find(&paths);
    evict(&files);
    let options = WarmOptions { bytes_max: Some(3 * page_bytes() + 9), ..WarmOptions::default() };
    let events = Events::default();
    let warmed = Warmed::run(&files, &options, &events);
    // The files of 1 and 5000 bytes take three pages, and 9 bytes are left for the next file.
    assert_eq!(events.read(), [1, 9, 5000]);
    assert_eq!(warmed.bytes_max, 3 * page_bytes() + 9);
    assert!((4..pages() / 2).contains(&warmed.after.resident), "{warmed:?}");
}

#[test]
fn stopped_load_reads_nothing() {
    let (_dir, paths) = make();
    let files = find(&paths);
    evict(&files);
    let events = Events { is_stopped: true, ..Events::default() };
    let warmed = Warmed::run(&files, &WarmOptions::default(), &events);
    assert_eq!((warmed.before, warmed.after.resident), (PageCounts::default(), 0));
    assert_eq!(events.read(), [0; 0]);
}

#[test]
fn removed_file_is_reported_once_and_the_others_are_loaded() {
    let (dir, paths) = make();
    let files = find(&paths);
    evict(&files);
    let removed = dir.path().join("2");
    fs::remove_file(&removed).unwrap();
    let events = Events::default();
    let warmed = Warmed::run(&files, &WarmOptions::default(), &events);
    assert_eq!((warmed.after.files, warmed.after.missing()), (4, 0));
    assert_eq!(*events.failed.lock().unwrap(), [removed]);
}

#[test]
fn pages_of_tmpfs_remain_and_are_counted() {
    let dir = Path::new("/dev/shm");
    if !probe(dir).is_ok_and(|storage| storage.file_system == FileSystem::Tmpfs) {
        return skip("/dev/shm is no tmpfs");
    }
    let dir = tempfile::tempdir_in(dir).unwrap();
    write_synced(&dir.path().join("file"), 5000);
    let paths = [dir.path().to_owned()];
    let evicted = evict(&find(&paths));
    let pages = 5000_u64.div_ceil(page_bytes());
    assert_eq!((evicted.in_memory, evicted.remaining), (pages, Remaining::default()));
}
