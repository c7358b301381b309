//! Tests that a file reachable by several paths is not a duplicate of itself.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use haul_bulk_read::WalkOptions;
use haul_duplicates::{Options, find};
use haul_testing::{run, skip};

use crate::{Groups, RecordedEvents, disk_dir, everything, paths, write_all};

fn groups(roots: &[PathBuf], walk: &WalkOptions<'_>) -> Groups {
    let events = RecordedEvents::default();
    let found = find(roots, walk, &Options::default(), &events);
    assert_eq!(events.failed(), [""; 0]);
    let groups: Vec<_> = found.groups().collect();
    paths(&groups)
}

/// All combinations of following and listing links.
fn walks() -> [WalkOptions<'static>; 4] {
    [(false, false), (true, false), (false, true), (true, true)].map(
        |(follow_links, report_links)| WalkOptions { follow_links, report_links, ..everything() },
    )
}

#[test]
fn duplicate_and_nested_roots_are_one_file() {
    let dir = disk_dir();
    write_all(dir.path(), &[("1/a", b"xxx")]);
    let (one, file) = (dir.path().join("1"), dir.path().join("1/a"));
    let dotted = dir.path().join("1/../1/./a");
    for roots in [
        vec![one.clone(), one.clone()],
        vec![file.clone(), file.clone()],
        vec![one.clone(), file.clone()],
        vec![file.clone(), one.clone()],
        vec![file, dotted, one],
    ] {
        for walk in walks() {
            assert_eq!(groups(&roots, &walk), Groups::new(), "{roots:?}");
        }
    }
}

#[test]
fn link_root_is_its_target() {
    let dir = disk_dir();
    write_all(dir.path(), &[("1/a", b"xxx")]);
    symlink("a", dir.path().join("1/link")).unwrap();
    let [one, file, link] = ["1", "1/a", "1/link"].map(|name| dir.path().join(name));
    let of = |roots: &[&PathBuf]| -> Vec<PathBuf> { roots.iter().copied().cloned().collect() };
    for roots in [of(&[&one]), of(&[&one, &file]), of(&[&one, &link]), of(&[&file, &link])] {
        for walk in walks() {
            assert_eq!(groups(&roots, &walk), Groups::new(), "{roots:?}");
        }
    }
}

#[test]
fn link_to_a_parent_is_not_walked_again() {
    let dir = disk_dir();
    write_all(dir.path(), &[("1/a", b"xxx"), ("1/2/b", b"yyy")]);
    symlink("../1", dir.path().join("1/link")).unwrap();
    symlink("../..", dir.path().join("1/2/up")).unwrap();
    let [one, link] = ["1", "1/link"].map(|name| dir.path().join(name));
    for roots in [vec![one.clone()], vec![one.clone(), link.clone()], vec![link, one]] {
        for walk in walks() {
            assert_eq!(groups(&roots, &walk), Groups::new(), "{roots:?}");
        }
    }
}

#[test]
fn link_text_is_not_compared_as_content() {
    let dir = disk_dir();
    write_all(dir.path(), &[("foo", b"xxx"), ("file", b"foo")]);
    symlink("foo", dir.path().join("link")).unwrap();
    for walk in walks() {
        assert_eq!(groups(&[dir.path().into()], &walk), Groups::new());
    }
}

#[test]
fn bind_mounted_files_are_found_once() {
    let dir = disk_dir();
    write_all(dir.path(), &[("a/b/1", b"hidden by the mount"), ("c/2", b"xxx"), ("a/3", b"xxx")]);
    let at = dir.path().join("a/b");
    let mounted = run(Command::new("mount").arg("--rbind").arg(dir.path()).arg(&at));
    if let Err(reason) = mounted {
        return skip(&reason);
    }
    let found = [vec![dir.path().into()], vec![dir.path().into(), at.clone()]]
        .map(|roots| groups(&roots, &everything()));
    let unmounted = run(Command::new("umount").arg("--lazy").arg(&at));
    unmounted.unwrap();
    for groups in found {
        assert_eq!(groups.len(), 1, "{groups:?}");
        let names: Vec<_> = groups.iter().flatten().map(|path| path.file_name().unwrap()).collect();
        assert_eq!(names.len(), 2, "{groups:?}");
        assert!(["2", "3"].iter().all(|name| names.iter().any(|found| found == name)));
    }
    assert_eq!(fs::read(Path::new(&at).join("1")).unwrap(), b"hidden by the mount");
}
