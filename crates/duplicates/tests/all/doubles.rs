//! One file on several ways is no duplicate of itself.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use haul_bulk_read::WalkOptions;
use haul_duplicates::{Options, find};
use haul_test_image::{run, skip};

use crate::{Groups, Told, disk_dir, everything, paths, write_all};

fn groups(roots: &[PathBuf], walk: &WalkOptions<'_>) -> Groups {
    let told = Told::default();
    let found = find(roots, walk, &Options::default(), &told);
    assert_eq!(told.failed(), [""; 0]);
    let groups: Vec<_> = found.groups().collect();
    paths(&groups)
}

/// All ways of walking that follow links or list them, and the plain one.
fn walks() -> [WalkOptions<'static>; 4] {
    [(false, false), (true, false), (false, true), (true, true)].map(
        |(follow_links, report_links)| WalkOptions { follow_links, report_links, ..everything() },
    )
}

#[test]
fn a_file_named_twice_or_with_its_directory_is_one_file() {
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
fn a_link_named_beside_its_file_is_that_file() {
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
fn a_link_back_up_leads_to_nothing_new() {
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
fn a_link_is_not_compared_by_the_text_it_holds() {
    let dir = disk_dir();
    write_all(dir.path(), &[("foo", b"xxx"), ("file", b"foo")]);
    symlink("foo", dir.path().join("link")).unwrap();
    for walk in walks() {
        assert_eq!(groups(&[dir.path().into()], &walk), Groups::new());
    }
}

#[test]
fn what_a_mount_shows_once_more_is_found_once() {
    let dir = disk_dir();
    write_all(dir.path(), &[("a/b/1", b"hidden by the mount"), ("c/2", b"xxx"), ("a/3", b"xxx")]);
    let at = dir.path().join("a/b");
    let mounted = run(Command::new("mount").arg("--rbind").arg(dir.path()).arg(&at));
    if let Err(why) = mounted {
        return skip(&why);
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
