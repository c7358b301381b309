//! Tests which pages a search leaves in the page cache.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::Path;

use haul_disk::{evict, resident};
use haul_duplicates::Options;
use haul_testing::{Random, eventually};

use crate::{disk_dir, found};

const BYTES: usize = 16 << 20;

fn cached_bytes(path: &Path) -> u64 {
    resident(&File::open(path).unwrap().as_fd(), 0, u64::MAX).unwrap().resident_bytes
}

#[test]
fn uncached_large_files_leave_only_samples_in_the_page_cache() {
    let dir = disk_dir();
    let content = Random::from_environment().bytes(BYTES);
    let paths = ["a", "b"].map(|name| dir.path().join(name));
    for path in &paths {
        fs::write(path, &content).unwrap();
    }
    let cached_after = |options: &Options<'_>| {
        for path in &paths {
            let file = File::open(path).unwrap();
            file.sync_all().unwrap();
            // The kernel may still use pages that were just written.
            eventually("no page is cached", || {
                evict(&file.as_fd(), 0, u64::MAX).unwrap();
                cached_bytes(path) == 0
            });
        }
        assert_eq!(found(dir.path(), options).len(), 1);
        paths.iter().map(|path| cached_bytes(path)).sum::<u64>()
    };
    let all = 2 * BYTES as u64;
    let cached = cached_after(&Options::default());
    assert!(cached <= all / 10, "{cached} of {all}");
    let options = Options { preserve_cache_for_large: false, ..Options::default() };
    let cached = cached_after(&options);
    assert!(cached >= all / 2, "{cached} of {all}");
}

#[test]
fn cached_files_stay_cached() {
    let dir = disk_dir();
    let content = Random::from_environment().bytes(BYTES);
    for name in ["a", "b"] {
        fs::write(dir.path().join(name), &content).unwrap();
        File::open(dir.path().join(name)).unwrap().sync_all().unwrap();
    }
    found(dir.path(), &Options::default());
    for name in ["a", "b"] {
        // The kernel may reclaim some of the pages at any time.
        let cached = cached_bytes(&dir.path().join(name));
        assert!(cached >= BYTES as u64 / 4 * 3, "{cached} of {BYTES}");
    }
}
