//! Tests which directories count as equal.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use haul_bulk_read::WalkOptions;
use haul_duplicates::{Options, duplicate_dirs, find};

use crate::{RecordedEvents, disk_dir, write_all};

fn duplicates(dir: &Path) -> Vec<Vec<String>> {
    let walk = WalkOptions { hidden: true, ..WalkOptions::default() };
    let found = find(&[dir.into()], &walk, &Options::default(), &RecordedEvents::default());
    let name = |path: &std::path::PathBuf| path.strip_prefix(dir).unwrap().display().to_string();
    duplicate_dirs(&found).iter().map(|group| group.dirs.iter().map(name).collect()).collect()
}

#[test]
fn directories_are_equal_by_names_and_contents() {
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
            // `c` equals `a/x` and `b/x`.
            ("c/1", b"one"),
            ("c/2", b"two"),
            // `d` has another file name, `e` another content, and `f` an additional file.
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
    assert_eq!(duplicates(dir.path()), [vec!["a", "b"], vec!["a/x", "b/x", "c"]]);
}

#[test]
fn directory_with_an_unsearched_entry_equals_no_other() {
    let dir = disk_dir();
    write_all(dir.path(), &[("a/.h", b"x"), ("b/.h", b"x"), ("c/.h", b"x")]);
    assert_eq!(duplicates(dir.path()), [["a", "b", "c"]]);
    symlink(".h", dir.path().join("b/link")).unwrap();
    assert_eq!(duplicates(dir.path()), [["a", "c"]]);
    fs::create_dir(dir.path().join("c/empty")).unwrap();
    assert_eq!(duplicates(dir.path()), [[""; 0]; 0]);
    fs::create_dir(dir.path().join("a/empty")).unwrap();
    assert_eq!(duplicates(dir.path()), [["a", "c"]]);
}

#[test]
fn nested_directories_are_equal_below_differing_names() {
    let dir = disk_dir();
    // Each level has a file and a directory, the next level.
    let nested = |root: &str, letters: &str| {
        let mut path = root.to_owned();
        for letter in letters.chars() {
            path.push('/');
            path.push(letter);
            write_all(dir.path(), &[(&format!("{path}/1"), b"xxx")]);
        }
    };
    nested("deep", "abcd");
    nested("deep", "efgh");
    // Directories `d` and `h` have equal contents. Their parents do not: the subdirectory of `c` is
    // named `d`, that of `g` is named `h`.
    assert_eq!(duplicates(dir.path()), [["deep/a/b/c/d", "deep/e/f/g/h"]]);
    nested("deep", "xyzabc");
    nested("deep", "uvwabc");
    let found = duplicates(dir.path());
    assert_eq!(found[0], ["deep/u/v/w", "deep/x/y/z"], "{found:?}");
}

#[test]
fn duplicate_tree_is_reported_without_its_subdirectories() {
    let dir = disk_dir();
    for tree in ["deep_a", "deep_b"] {
        for name in ["a/b/1", "a/b/c/1", "e/b/1", "e/b/c/1"] {
            write_all(dir.path(), &[(&format!("{tree}/{name}"), b"xxx")]);
        }
    }
    assert_eq!(duplicates(dir.path()), [["deep_a", "deep_b"]]);
    fs::remove_dir_all(dir.path().join("deep_b")).unwrap();
    assert_eq!(
        duplicates(dir.path()),
        [["deep_a/a", "deep_a/e"]],
        "then its subdirectories are reported"
    );
}

#[test]
fn directories_with_another_layout_differ() {
    let dir = disk_dir();
    let files: [(&str, &[u8]); 4] = [
        ("tree-a/sub2/x", b"xxx"),
        ("tree-a/sub1/y", b"yyy"),
        ("tree-b/x", b"xxx"),
        ("tree-b/y", b"yyy"),
    ];
    write_all(dir.path(), &files);
    assert_eq!(duplicates(dir.path()), [[""; 0]; 0]);
}

#[test]
fn directories_of_empty_files_are_equal_but_empty_ones_are_not() {
    let dir = disk_dir();
    write_all(dir.path(), &[("a/empty", b""), ("b/empty", b"")]);
    for name in ["c", "d", "e/below", "f/below"] {
        fs::create_dir_all(dir.path().join(name)).unwrap();
    }
    assert_eq!(duplicates(dir.path()), [["a", "b"]]);
}

#[test]
fn additional_copy_of_a_file_makes_directories_differ() {
    let dir = disk_dir();
    write_all(dir.path(), &[("1/a", b"xxx"), ("2/a", b"xxx"), ("2/b", b"xxx"), ("3/a", b"xxx")]);
    assert_eq!(duplicates(dir.path()), [["1", "3"]]);
}

#[test]
fn hard_links_count_as_separate_files_of_a_directory() {
    let dir = disk_dir();
    for number in ["1", "2"] {
        let path = |name: &str| dir.path().join(number).join(name);
        write_all(dir.path(), &[(&format!("{number}/a"), b"xxx")]);
        fs::hard_link(path("a"), path("link1")).unwrap();
        fs::hard_link(path("a"), path("link2")).unwrap();
    }
    assert_eq!(duplicates(dir.path()), [["1", "2"]]);
    fs::remove_file(dir.path().join("2/link2")).unwrap();
    assert_eq!(duplicates(dir.path()), [[""; 0]; 0]);
}
