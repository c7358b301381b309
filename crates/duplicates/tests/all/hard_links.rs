//! Tests how hard links count as replicas, and which names of a file are kept.

use std::fs;
use std::path::Path;

use haul_bulk_read::WalkOptions;
use haul_duplicates::act::{Action, Executor};
use haul_duplicates::{Options, find};

use crate::actions::{RecordedActions, options, wait_for_writers};
use crate::{RecordedEvents, disk_dir, everything, found, write_all};

/// Creates two files of equal content; the first has a hard link.
fn linked_files() -> tempfile::TempDir {
    let dir = disk_dir();
    write_all(dir.path(), &[("file_a", b"xxx"), ("file_z", b"xxx")]);
    fs::hard_link(dir.path().join("file_a"), dir.path().join("file_b")).unwrap();
    dir
}

/// Removes duplicates of files found in this order and returns the remaining names.
fn remaining(dir: &Path, order: &[&str], match_links: bool) -> Vec<String> {
    let roots: Vec<_> = order.iter().map(|name| dir.join(name)).collect();
    let search = Options { match_links, ..Options::default() };
    let found = find(&roots, &everything(), &search, &RecordedEvents::default());
    let mut actions = RecordedActions::default();
    let mut options = options(Action::Remove);
    options.rules.match_links = match_links;
    let mut executor = Executor::new(options);
    for group in found.groups() {
        wait_for_writers(&group);
        executor.process(&group, &mut actions);
    }
    assert!(actions.skipped.is_empty(), "{:?}", actions.skipped);
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn links_of_kept_files_are_kept_without_match_links() {
    for (order, match_links, expected) in [
        (["file_a", "file_b", "file_z"], false, &["file_a", "file_b"][..]),
        (["file_b", "file_z", "file_a"], false, &["file_a", "file_b"]),
        (["file_z", "file_b", "file_a"], false, &["file_z"]),
        (["file_a", "file_b", "file_z"], true, &["file_a"]),
        (["file_z", "file_b", "file_a"], true, &["file_z"]),
    ] {
        let dir = linked_files();
        assert_eq!(remaining(dir.path(), &order, match_links), expected, "{order:?} {match_links}");
    }
}

#[test]
fn hard_links_are_duplicates_only_with_match_links() {
    let dir = disk_dir();
    write_all(dir.path(), &[("a", b"xxx")]);
    fs::hard_link(dir.path().join("a"), dir.path().join("b")).unwrap();
    assert!(found(dir.path(), &Options::default()).is_empty());
    let links = Options { match_links: true, ..Options::default() };
    assert_eq!(found(dir.path(), &links)[0].members.len(), 2);
}

#[test]
fn hard_links_are_not_counted_as_redundant() {
    let dir = disk_dir();
    write_all(dir.path(), &[("a", b"xxx"), ("b", b"xxx"), ("sub/other", b"yyyy")]);
    for name in ["sub/a", "sub/b"] {
        fs::hard_link(dir.path().join("a"), dir.path().join(name)).unwrap();
    }
    let stats = |root: &Path| {
        let (walk, options) = (WalkOptions::default(), Options::default());
        let found = find(&[root.into()], &walk, &options, &RecordedEvents::default());
        let stats = found.stats();
        (stats.files, stats.redundant_bytes)
    };
    assert_eq!(stats(dir.path()), (4, 3), "four names of two files");
    // Both names refer to one inode, so removing one of them frees no space.
    assert_eq!(stats(&dir.path().join("sub")), (0, 0));
}
