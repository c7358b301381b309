//! Page files written by released versions, from the archives
//! `tests/fixtures/pages-VERSION.tar.gz`. Every later version must open them and write to them.

use std::path::Path;
use std::sync::Arc;

use haul_disk::{Disk, OsDisk};
use haul_sorted_write::{PageFile, Recovery};
use haul_testing::{disk_dir, fixtures};

use crate::page_file::options;

/// The directories of an archive: a page file that was closed, and one as a killed process left it.
const FILES: [&str; 2] = ["closed", "killed"];

const PAGES: u64 = 120;

/// Returns the content of a page: its number and a generation, repeated.
fn page(number: u64, generation: u8) -> Vec<u8> {
    [number.to_le_bytes()[0], generation].repeat(2048)
}

fn open(dir: &Path) -> (PageFile, Recovery) {
    let log = dir.join("log");
    std::fs::create_dir_all(&log).unwrap();
    let (disk, log) = (OsDisk::open(dir).unwrap(), OsDisk::open(log).unwrap());
    let log: Arc<dyn Disk> = Arc::new(log);
    PageFile::open(&disk, "pages", &log, options(1 << 20)).unwrap()
}

/// Writes every `step`-th page, the last one first, and waits until all are durable.
fn put(pages: &PageFile, generation: u8, step: usize) {
    for number in (0..PAGES).rev().step_by(step) {
        drop(pages.write(number * 4096, &page(number, generation)).unwrap());
    }
    pages.sync().unwrap();
}

/// Writes the page files of an archive. If the process was killed, the pages of generation 2 are only
/// in the log.
fn write(dir: &Path) {
    for name in FILES {
        let (path, killed) = (dir.join(name), disk_dir());
        let target = if name == "killed" { killed.path() } else { &path };
        std::fs::create_dir_all(target).unwrap();
        let empty = (0..PAGES).flat_map(|_| [0; 4096]).collect::<Vec<_>>();
        std::fs::write(target.join("pages"), empty).unwrap();
        let (pages, _) = open(target);
        put(&pages, 1, 1);
        pages.checkpoint().unwrap();
        put(&pages, 2, 3);
        if name == "killed" {
            fixtures::copy_files(target, &path);
        }
        pages.close().unwrap();
    }
}

/// Checks all pages, of which every third has this generation and the other ones generation 1.
fn check_pages(pages: &PageFile, generation: u8, about: &str) {
    for number in 0..PAGES {
        let mut bytes = vec![0; 4096];
        assert_eq!(pages.read(number * 4096, &mut bytes).unwrap(), 4096);
        let is_newer = (PAGES - 1 - number).is_multiple_of(3);
        let expected = page(number, if is_newer { generation } else { 1 });
        assert!(bytes == expected, "{about}: page {number} begins with {:?}", &bytes[..2]);
    }
}

fn check(dir: &Path, version: &str) {
    for name in FILES {
        let about = format!("{version} {name}");
        let (pages, recovery) = open(&dir.join(name));
        assert_eq!(recovery.replayed > 0, name == "killed", "{about}: {recovery:?}");
        check_pages(&pages, 2, &about);
        put(&pages, 3, 3);
        pages.close().unwrap();
        let (pages, recovery) = open(&dir.join(name));
        assert_eq!(recovery.replayed, 0, "{about}");
        check_pages(&pages, 3, &about);
        pages.close().unwrap();
    }
}

#[test]
fn page_files_of_released_versions_are_read_and_written() {
    for (version, dir) in fixtures::release_fixtures(env!("CARGO_MANIFEST_DIR"), "pages") {
        check(dir.path(), &version);
    }
}

#[test]
fn page_file_of_this_version_passes_the_test_of_releases() {
    let dir = disk_dir();
    write(dir.path());
    fixtures::save(dir.path(), "pages", env!("CARGO_PKG_VERSION"));
    check(dir.path(), "this version");
}
