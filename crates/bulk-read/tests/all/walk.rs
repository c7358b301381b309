//! Tests which files a walk finds.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use haul_bulk_read::{SkipReason, WalkOptions, walk};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

use crate::{RecordedEvents, disk_dir, paths, walk_ok, write_all};

#[test]
fn all_but_hidden_files_are_found_with_metadata() {
    let dir = disk_dir();
    write_all(
        dir.path(),
        &[("b/two", "22"), ("a", "1"), (".c/x", ""), ("b/.d", ""), ("b/e/f", "")],
    );
    let roots = [dir.path().to_path_buf()];
    let tree = walk_ok(&roots, &WalkOptions::default());
    assert_eq!(paths(&tree, dir.path()), ["a", "b/e/f", "b/two"]);
    let all = walk_ok(&roots, &WalkOptions { hidden: true, ..WalkOptions::default() });
    assert_eq!(paths(&all, dir.path()), [".c/x", "a", "b/.d", "b/e/f", "b/two"]);

    use std::os::unix::fs::MetadataExt;
    let status = std::fs::metadata(dir.path().join("b/two")).unwrap();
    let meta = tree.meta(tree.ids().last().unwrap());
    assert_eq!((meta.device, meta.inode, meta.bytes), (status.dev(), status.ino(), 2));
    assert_eq!(meta.modified_ns, status.mtime() * 1_000_000_000 + status.mtime_nsec());
    assert_eq!(meta.links, 1);
}

#[test]
fn arbitrary_names_and_paths_beyond_path_max_are_found() {
    let dir = disk_dir();
    let unusual = OsStr::from_bytes(b"new\nline \xff\xfe");
    std::fs::write(dir.path().join(unusual), "x").unwrap();
    // 30 directories of 200 bytes each: 6000 bytes of path.
    let mut at = std::fs::File::open(dir.path()).unwrap().into();
    let long = "x".repeat(200);
    for _ in 0..30 {
        rustix::fs::mkdirat(&at, &long, Mode::RWXU).unwrap();
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        at = rustix::fs::openat::<_, &std::os::fd::OwnedFd>(&at, &long, flags, Mode::empty())
            .unwrap();
    }
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
    drop(rustix::fs::openat(&at, "deep", flags, Mode::RWXU).unwrap());

    let tree = walk_ok(&[dir.path().to_path_buf()], &WalkOptions::default());
    let names: Vec<_> = tree.ids().map(|id| tree.name(id).to_bytes().to_vec()).collect();
    assert_eq!(names, [unusual.as_bytes(), b"deep"]);
    let deep = tree.path(tree.ids().last().unwrap());
    assert!(deep.as_os_str().len() > 6000, "{}", deep.as_os_str().len());
}

#[test]
fn duplicate_and_nested_roots_count_once() {
    let dir = disk_dir();
    write_all(dir.path(), &[("a", "1"), ("b/c", "2")]);
    let roots = ["", "a", ".", "b/../a", "b"].map(|below| dir.path().join(below));
    let events = RecordedEvents::default();
    let tree = walk(&roots, &WalkOptions { sort: true, ..WalkOptions::default() }, &events);
    let mut names: Vec<_> = tree.ids().map(|id| tree.name(id).to_owned()).collect();
    names.sort();
    assert_eq!(names, [c"a".to_owned(), c"c".to_owned()]);
    assert_eq!(events.failed(), Vec::<String>::new());
    let seen =
        events.skipped().iter().filter(|(_, reason)| *reason == SkipReason::AlreadyVisited).count();
    assert_eq!(seen, 3, "{:?}", events.skipped());
}

#[test]
fn file_below_several_roots_belongs_to_the_innermost() {
    let dir = disk_dir();
    write_all(dir.path(), &[("a/b/c/1", ""), ("a/b/2", ""), ("a/3", "")]);
    let options = WalkOptions { sort: true, threads: Some(4), ..WalkOptions::default() };
    for _ in 0..200 {
        for roots in [["a", "a/b/c", "a/b"], ["a/b", "a", "a/b/c"], ["a/b/c", "a/b", "a"]] {
            let tree = walk_ok(&roots.map(|root| dir.path().join(root)), &options);
            let of = |name: &CStr| {
                let file = tree.ids().find(|id| tree.name(*id) == name).unwrap();
                roots[tree.root(file)]
            };
            assert_eq!([of(c"1"), of(c"2"), of(c"3")], ["a/b/c", "a/b", "a"]);
            assert_eq!(tree.len(), 3);
        }
    }
    let shallow = WalkOptions { depth_max: Some(1), ..options };
    let roots = ["a", "a/b/c"].map(|root| dir.path().join(root));
    assert_eq!(paths(&walk_ok(&roots, &shallow), dir.path()), ["a/3", "a/b/c/1"]);
}

#[test]
fn links_are_followed_on_request_and_loops_terminate() {
    let dir = disk_dir();
    write_all(dir.path(), &[("real/file", "1")]);
    symlink("real", dir.path().join("dir-link")).unwrap();
    symlink("real/file", dir.path().join("file-link")).unwrap();
    symlink("../..", dir.path().join("real/up")).unwrap();
    symlink("..", dir.path().join("real/back")).unwrap();
    symlink("nowhere", dir.path().join("dangling")).unwrap();
    symlink("itself", dir.path().join("itself")).unwrap();
    std::fs::remove_file(dir.path().join("real/up")).unwrap();
    let roots = [dir.path().to_path_buf()];
    let plain = WalkOptions::default();
    assert_eq!(paths(&walk_ok(&roots, &plain), dir.path()), ["real/file"]);
    let reported = WalkOptions { report_links: true, ..plain.clone() };
    let tree = walk_ok(&roots, &reported);
    assert_eq!(paths(&tree, dir.path()), ["file-link", "real/file"]);
    assert_eq!(tree.ids().map(|id| tree.is_link(id)).collect::<Vec<_>>(), [true, false]);

    let events = RecordedEvents::default();
    let followed = WalkOptions { follow_links: true, sort: true, threads: Some(1), ..plain };
    let tree = walk(&roots, &followed, &events);
    assert_eq!(paths(&tree, dir.path()), ["file-link", "real/file"]);
    let skipped = events.skipped();
    let reason =
        |name: &str| skipped.iter().find(|(path, _)| path.ends_with(name)).map(|one| one.1);
    assert_eq!(reason("dangling"), Some(SkipReason::DanglingLink));
    assert_eq!(reason("itself"), Some(SkipReason::DanglingLink));
    assert_eq!(reason("back"), Some(SkipReason::AlreadyVisited));
}

#[test]
fn linked_directory_is_found_at_its_own_path_or_at_its_first_link() {
    let (dir, outside) = (disk_dir(), disk_dir());
    // The links have lower inode numbers than the directory, so they are listed before it.
    for link in ["a-link", "b/link"] {
        std::fs::create_dir_all(dir.path().join("b")).unwrap();
        symlink(dir.path().join("own/deep"), dir.path().join(link)).unwrap();
    }
    write_all(dir.path(), &[("own/deep/1/2/file", "1"), ("own/file", "1")]);
    write_all(outside.path(), &[("sub/file", "2"), ("sub/dir/file", "2"), ("file", "2")]);
    for link in ["x-2", "x-1", "b/x"] {
        symlink(outside.path().join("sub"), dir.path().join(link)).unwrap();
    }
    // Another link is found only by following a link.
    symlink(outside.path(), outside.path().join("sub/more")).unwrap();
    let expected = ["b/x/dir/file", "b/x/file", "b/x/more/file", "own/deep/1/2/file", "own/file"];
    for round in 0..60 {
        let threads = Some(round % 8 + 1);
        let options =
            WalkOptions { follow_links: true, sort: true, threads, ..WalkOptions::default() };
        let tree = walk(&[dir.path().to_path_buf()], &options, &RecordedEvents::default());
        assert_eq!(paths(&tree, dir.path()), expected, "{threads:?} threads");
    }
}

#[test]
fn special_files_are_skipped_and_never_opened() {
    let dir = disk_dir();
    write_all(dir.path(), &[("file", "1")]);
    let pipe = dir.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).unwrap();
    let events = RecordedEvents::default();
    let tree = walk(&[dir.path().to_path_buf(), pipe.clone()], &WalkOptions::default(), &events);
    assert_eq!(paths(&tree, dir.path()), ["file"]);
    let expected = [&pipe, &pipe, &dir.path().join("socket")]
        .map(|path| (path.clone(), SkipReason::NotRegularFile));
    assert_eq!(events.skipped(), expected);
}

#[test]
fn depth_size_and_filters_select_files() {
    let dir = disk_dir();
    write_all(dir.path(), &[("a", "1"), ("b/c", "22"), ("b/d/e", "333"), ("f/g", "4444")]);
    let roots = [dir.path().to_path_buf()];
    let found = |options: WalkOptions<'_>| paths(&walk_ok(&roots, &options), dir.path());
    let plain = WalkOptions::default();
    assert_eq!(found(WalkOptions { depth_max: Some(0), ..plain.clone() }), [""; 0]);
    assert_eq!(found(WalkOptions { depth_max: Some(1), ..plain.clone() }), ["a"]);
    assert_eq!(found(WalkOptions { depth_max: Some(2), ..plain.clone() }), ["a", "b/c", "f/g"]);
    let sizes = WalkOptions { bytes_min: 2, bytes_max: 3, ..plain.clone() };
    assert_eq!(found(sizes), ["b/c", "b/d/e"]);
    let not_c = |path: &Path| !path.ends_with("c");
    assert_eq!(found(WalkOptions { accept: Some(&not_c), ..plain.clone() }), ["a", "b/d/e", "f/g"]);
    let not_b = |path: &Path| !path.ends_with("b");
    assert_eq!(found(WalkOptions { accept_dir: Some(&not_b), ..plain }), ["a", "f/g"]);
}

#[test]
fn innermost_ignore_file_takes_precedence() {
    let dir = disk_dir();
    let files = [
        (".gitignore", "*.o\n/build/\n"),
        ("a.o", ""),
        ("a.c", ""),
        ("build/x", ""),
        ("sub/build/x", ""),
        ("sub/.ignore", "!keep.o\n"),
        ("sub/keep.o", ""),
        ("sub/drop.o", ""),
        ("sub/.fdignore", "*.tmp\n"),
        ("sub/y.tmp", ""),
        ("y.tmp", ""),
    ];
    write_all(dir.path(), &files);
    let options = WalkOptions { ignore_files: true, ..WalkOptions::default() };
    let tree = walk_ok(&[dir.path().to_path_buf()], &options);
    assert_eq!(paths(&tree, dir.path()), ["a.c", "sub/build/x", "sub/keep.o", "y.tmp"]);
}

#[test]
fn missing_root_is_reported_and_the_others_are_walked() {
    let dir = disk_dir();
    write_all(dir.path(), &[("a", "1")]);
    let events = RecordedEvents::default();
    let roots = [dir.path().join("none"), dir.path().to_path_buf()];
    let tree = walk(&roots, &WalkOptions::default(), &events);
    assert_eq!(tree.len(), 1);
    assert_eq!(tree.root(tree.ids().next().unwrap()), 1);
    let failed = events.failed.lock().unwrap();
    assert!(failed.len() == 1 && failed[0].is_not_found() && failed[0].path() == roots[0]);
}

#[test]
fn result_is_independent_of_the_number_of_threads() {
    let dir = disk_dir();
    let names: Vec<_> = (0..400).map(|n| format!("{}/{}/{}/f{n}", n % 7, n % 5, n % 3)).collect();
    let files: Vec<_> = names.iter().map(|name| (name.as_str(), "x")).collect();
    write_all(dir.path(), &files);
    let mut expected = names.clone();
    expected.sort_by(|a, b| a.split('/').cmp(b.split('/')));
    for threads in [Some(1), Some(2), Some(9), None] {
        let options = WalkOptions { threads, ..WalkOptions::default() };
        let tree = walk_ok(&[dir.path().to_path_buf()], &options);
        assert_eq!(paths(&tree, dir.path()), expected, "{threads:?}");
    }
}
