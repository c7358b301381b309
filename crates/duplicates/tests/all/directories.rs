//! Directories that hold the same.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use haul_bulk_read::WalkOptions;
use haul_duplicates::{Options, find, same_dirs};

use crate::{Told, disk_dir, write_all};

fn same(dir: &Path) -> Vec<Vec<String>> {
    let walk = WalkOptions { hidden: true, ..WalkOptions::default() };
    let found = find(&[dir.into()], &walk, &Options::default(), &Told::default());
    let name = |path: &std::path::PathBuf| path.strip_prefix(dir).unwrap().display().to_string();
    same_dirs(&found).iter().map(|group| group.dirs.iter().map(name).collect()).collect()
}

#[test]
fn directories_are_the_same_when_names_and_contents_are() {
    let dir = disk_dir();
    write_all(
        dir.path(),
        &[
            ("a/x/1", b"one"),
            ("a/x/2", b"two"),
            ("a/y/e", b""),
            ("b/x/1", b"one"),
            ("b/x/2", b"two"),
            ("b/y/e", b""),
            // The same as one part of the others.
            ("c/1", b"one"),
            ("c/2", b"two"),
            // Another name, another content, one file more.
            ("d/1", b"one"),
            ("d/3", b"two"),
            ("e/1", b"one"),
            ("e/2", b"owt"),
            ("f/1", b"one"),
            ("f/2", b"two"),
            ("f/3", b"one"),
        ],
    );
    fs::create_dir(dir.path().join("g")).unwrap();
    fs::create_dir(dir.path().join("h")).unwrap();
    assert_eq!(same(dir.path()), [vec!["a", "b"], vec!["a/x", "b/x", "c"]]);
}

#[test]
fn what_holds_something_nobody_looked_at_is_like_nothing() {
    let dir = disk_dir();
    write_all(dir.path(), &[("a/.h", b"x"), ("b/.h", b"x"), ("c/.h", b"x")]);
    assert_eq!(same(dir.path()), [["a", "b", "c"]]);
    symlink(".h", dir.path().join("b/link")).unwrap();
    assert_eq!(same(dir.path()), [["a", "c"]]);
    fs::create_dir(dir.path().join("c/empty")).unwrap();
    assert_eq!(same(dir.path()), [[""; 0]; 0]);
    fs::create_dir(dir.path().join("a/empty")).unwrap();
    assert_eq!(same(dir.path()), [["a", "c"]]);
}
