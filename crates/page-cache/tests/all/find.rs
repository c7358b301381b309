//! Tests which files are found, and how they are opened.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use haul_page_cache::{Evicted, Files, count_pages, open_quietly};
use haul_testing::{disk_dir, write_deep_file};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::{Found, find, write_synced};

fn make_fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

#[test]
fn each_file_is_found_once_in_the_order_of_paths() {
    let dir = disk_dir();
    for name in ["b", "a", "c"] {
        write_synced(&dir.path().join(name), 10);
    }
    fs::hard_link(dir.path().join("a"), dir.path().join("d")).unwrap();
    symlink(dir.path().join("a"), dir.path().join("e")).unwrap();
    let paths = [dir.path().join("c"), dir.path().to_owned(), dir.path().join("e")];
    for one_file_system in [false, true] {
        let events = Found::default();
        let files = Files::find(&paths, one_file_system, &events);
        let mut names: Vec<_> = files
            .iter()
            .map(|found| (found.path.strip_prefix(dir.path()).unwrap().to_owned(), found.named))
            .collect();
        names.sort();
        let names = names.iter().map(|(path, named)| (path.to_str().unwrap(), *named));
        assert_eq!(names.collect::<Vec<_>>(), [("a", false), ("b", false), ("c", true)]);
    }
}

#[test]
fn paths_that_are_no_files_are_reported() {
    let (dir, below) = (disk_dir(), disk_dir());
    let (fifo, missing) = (dir.path().join("fifo"), dir.path().join("missing"));
    make_fifo(&fifo);
    make_fifo(&below.path().join("fifo"));
    let paths = [fifo.clone(), missing.clone(), below.path().to_owned()];
    let events = Found::default();
    assert_eq!(Files::find(&paths, false, &events).iter().count(), 0);
    assert_eq!(*events.not_files.lock().unwrap(), [fifo], "only a given path");
    let failed = events.failed.lock().unwrap();
    assert!(failed.len() == 1 && failed[0].contains(missing.to_str().unwrap()), "{failed:?}");
}

#[test]
fn file_at_a_path_beyond_the_limit_of_the_kernel_is_opened() {
    let dir = disk_dir();
    let path = write_deep_file(dir.path(), b"content");
    let paths = [dir.path().to_owned()];
    let found = find(&paths).iter().next().unwrap();
    assert_eq!(found.path, path);
    let fd = open_quietly(&found).unwrap();
    assert_eq!(count_pages(&path, &fd).unwrap().bytes, 7);
}

#[test]
fn replaced_file_neither_blocks_nor_follows_a_link() {
    let (dir, outside) = (disk_dir(), disk_dir());
    for name in ["fifo", "link", "removed"] {
        write_synced(&dir.path().join(name), 10);
    }
    write_synced(&outside.path().join("file"), 10);
    let (below, named) = ([dir.path().to_owned()], [dir.path().join("link")]);
    let (below, named) = (find(&below), find(&named));
    for name in ["fifo", "link", "removed"] {
        fs::remove_file(dir.path().join(name)).unwrap();
    }
    make_fifo(&dir.path().join("fifo"));
    symlink(outside.path().join("file"), dir.path().join("link")).unwrap();

    let opened: Vec<_> = below.iter().map(|found| open_quietly(&found).is_ok()).collect();
    assert_eq!(opened, [true, false, false]);
    assert!(named.iter().all(|found| open_quietly(&found).is_ok()), "a given path is followed");

    let mut failed = Vec::new();
    Evicted::run(&below, true, |error| failed.push(error.path.clone()));
    let is_named = |name| failed.contains(&dir.path().join(name));
    assert!(is_named("link") && is_named("removed"), "{failed:?}");
}
