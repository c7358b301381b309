//! Names of one file: whether they count, and which of them stay.

use std::fs;
use std::path::Path;

use haul_bulk_read::WalkOptions;
use haul_duplicates::act::{Action, Actor};
use haul_duplicates::{Options, find};

use crate::acting::{Heard, options};
use crate::{Told, disk_dir, everything, found, write_all};

/// Two files of one content; the first has a second name.
fn place() -> tempfile::TempDir {
    let dir = disk_dir();
    write_all(dir.path(), &[("file_a", b"xxx"), ("file_z", b"xxx")]);
    fs::hard_link(dir.path().join("file_a"), dir.path().join("file_b")).unwrap();
    dir
}

/// The names that are left once duplicates were removed, with the files found in this order.
fn left(dir: &Path, order: &[&str], match_links: bool) -> Vec<String> {
    let roots: Vec<_> = order.iter().map(|name| dir.join(name)).collect();
    let search = Options { match_links, ..Options::default() };
    let found = find(&roots, &everything(), &search, &Told::default());
    let mut heard = Heard::default();
    let mut how = options(Action::Remove);
    how.rules.match_links = match_links;
    let mut actor = Actor::new(how);
    found.groups().for_each(|group| actor.act(&group, &mut heard));
    assert!(heard.left.is_empty(), "{:?}", heard.left);
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn names_of_what_stays_stay_too_unless_each_counts() {
    for (order, match_links, expected) in [
        (["file_a", "file_b", "file_z"], false, &["file_a", "file_b"][..]),
        (["file_b", "file_z", "file_a"], false, &["file_a", "file_b"]),
        (["file_z", "file_b", "file_a"], false, &["file_z"]),
        (["file_a", "file_b", "file_z"], true, &["file_a"]),
        (["file_z", "file_b", "file_a"], true, &["file_z"]),
    ] {
        let dir = place();
        assert_eq!(left(dir.path(), &order, match_links), expected, "{order:?} {match_links}");
    }
}

#[test]
fn two_names_of_one_file_are_no_duplicates_unless_each_counts() {
    let dir = disk_dir();
    write_all(dir.path(), &[("a", b"xxx")]);
    fs::hard_link(dir.path().join("a"), dir.path().join("b")).unwrap();
    assert!(found(dir.path(), &Options::default()).is_empty());
    let links = Options { match_links: true, ..Options::default() };
    assert_eq!(found(dir.path(), &links)[0].members.len(), 2);
}

#[test]
fn what_would_free_nothing_is_not_counted_as_redundant() {
    let dir = disk_dir();
    write_all(dir.path(), &[("a", b"xxx"), ("b", b"xxx"), ("sub/other", b"yyyy")]);
    for name in ["sub/a", "sub/b"] {
        fs::hard_link(dir.path().join("a"), dir.path().join(name)).unwrap();
    }
    let stats = |root: &Path| {
        let (walk, options) = (WalkOptions::default(), Options::default());
        let found = find(&[root.into()], &walk, &options, &Told::default());
        let stats = found.stats();
        (stats.files, stats.redundant_bytes)
    };
    assert_eq!(stats(dir.path()), (4, 3), "four names of two files");
    // Those outside keep the blocks.
    assert_eq!(stats(&dir.path().join("sub")), (0, 0));
}
