//! Tests the filters of `haul dups` and its subcommands: lengths, times and paths.

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::time::{Duration, SystemTime};

use crate::helper::{Finished, TestDir};

/// Counts the groups of a report.
fn groups(ended: &Finished) -> usize {
    ended.lines().iter().filter(|line| line.is_empty()).count()
}

fn search(place: &TestDir, arguments: &[&str]) -> Finished {
    place.run(&[&["dups", "-f", "fdupes"], arguments].concat())
}

#[test]
fn length_limits_are_inclusive() {
    let place = TestDir::new();
    for (name, bytes) in [("big", 2048), ("middle", 1024), ("small", 512)] {
        for copy in ["1", "2", "3"] {
            place.write(format!("{name}{copy}"), vec![b'x'; bytes]);
        }
    }
    for (arguments, expected) in [
        (&["--min", "0"][..], 3),
        (&["--min", "1024"], 2),
        (&["--min", "2048"], 1),
        (&["--min", "2049"], 0),
        (&["--min", "1024", "--max", "2048"], 2),
        (&["--min", "0", "--max", "1024"], 2),
        (&["--min", "2048", "--max", "2048"], 1),
        (&["--min", "2KiB", "--max", "2 KiB"], 1),
        (&["--min", "2kB", "--max", "2.1kB"], 1),
        (&["--min", "18446744073709551615"], 0),
        (&["--max", "18446744073709551615"], 3),
    ] {
        assert_eq!(groups(&search(&place, arguments).code(0)), expected, "{arguments:?}");
    }
    for arguments in [
        &["--min", "-17"][..],
        &["--min", "10", "--max", "9"],
        &["--max", "18446744073709551616"],
        &["--max", "18446744073709551615MB"],
        &["--max", "1e3"],
    ] {
        search(&place, arguments).code(2);
    }
}

#[test]
fn files_are_removed_from_the_minimum_length_on() {
    for min in 0..=4_usize {
        let place = TestDir::new();
        for bytes in 0..=4 {
            for name in ["a", "b"] {
                place.write(format!("{name}/{bytes}"), vec![0; bytes]);
            }
        }
        let report = place.run(&["dups", "--min", &min.to_string(), "a", "b"]).code(0);
        place.run_with(&["dups", "remove"], report.stdout()).code(0);
        for bytes in 0..=4 {
            assert!(place.path(format!("a/{bytes}")).exists());
            assert_eq!(place.path(format!("b/{bytes}")).exists(), bytes < min, "{min} {bytes}");
        }
    }
}

#[test]
fn modified_before_is_inclusive() {
    let moment = SystemTime::UNIX_EPOCH + Duration::from_secs(1_078_071_702);
    for (later, is_left) in [
        (Duration::ZERO, false),
        (Duration::from_nanos(1), true),
        (Duration::from_millis(999), true),
        (Duration::from_secs(2), true),
    ] {
        let place = TestDir::new();
        for (name, when) in [("a", moment - Duration::from_secs(9)), ("b", moment + later)] {
            let file = File::options().write(true).open(place.write(name, "xxx")).unwrap();
            file.set_times(FileTimes::new().set_modified(when)).unwrap();
        }
        let report = place.run(&["dups"]).code(0);
        let remove = ["dups", "remove", "--modified-before", "2004-02-29 16:21:42"];
        place.run_with(&remove, report.stdout()).code(i32::from(is_left));
        assert_eq!(place.path("b").exists(), is_left, "{later:?}");
        assert!(place.path("a").exists());
    }
}

#[test]
fn empty_stdin_does_not_search_the_current_directory() {
    let place = TestDir::new();
    place.write("a", "1234");
    place.write("b", "1234");
    for arguments in [&["--stdin"][..], &["--stdin", "-0"], &["--stdin", "--dirs"]] {
        let arguments = [&["dups", "-f", "fdupes"], arguments].concat();
        assert_eq!(place.run_with(&arguments, b"").code(0).text(), "", "{arguments:?}");
    }
}

#[test]
fn path_may_begin_with_a_dash() {
    let place = TestDir::new();
    place.write("-look-in-here/a", "1234");
    place.write("-look-in-here/b", "1234");
    for arguments in [&["--", "-look-in-here"][..], &["./-look-in-here"]] {
        let found = search(&place, arguments).code(0);
        assert_eq!((groups(&found), found.lines().len()), (1, 3));
    }
    let report = place.run(&["dups", "--", "-look-in-here"]).code(0);
    place
        .run_with(&["dups", "remove"], report.stdout())
        .code(0)
        .stderr_contains(&["removed 1 file (4 B)"]);
}

#[test]
fn dangling_links_are_reported_if_named() {
    let place = TestDir::new();
    place.write("d/a", "xxx");
    place.write("d/b", "xxx");
    for name in ["link_a", "d/link_b"] {
        symlink("nowhere", place.path(name)).unwrap();
    }
    search(&place, &["link_a", "d/link_b"]).code(3).stderr_contains(&["link_a", "link_b"]);
    let found = search(&place, &["link_a", "d"]).code(3).stderr_contains(&["link_a"]);
    assert_eq!(groups(&found), 1, "the others are found");
    for options in [&["d"][..], &["-S", "d"]] {
        assert_eq!(groups(&search(&place, options).code(0)), 1, "{options:?}");
    }
}

#[test]
fn named_hidden_directory_is_searched() {
    let place = TestDir::new();
    for name in [".a/1", ".a/2", ".b/1", ".1"] {
        place.write(name, "xxx");
    }
    let members = |arguments: &[&str]| {
        let found = search(&place, arguments).code(0);
        found.lines().len() - groups(&found)
    };
    assert_eq!(members(&[]), 0);
    assert_eq!(members(&[".a"]), 2);
    assert_eq!(members(&["--hidden"]), 4);
}

#[test]
fn first_path_is_kept_at_any_depth() {
    for (roots, stays, goes) in [
        (&["a", "b"][..], "a", "b"),
        (&["b", "a"], "b", "a"),
        (&["a", "d/a"], "a", "d/a"),
        (&["d/a", "a"], "d/a", "a"),
        (&["d/e/f/a", "a"], "d/e/f/a", "a"),
        (&["d"], "d/a", "d/e/f/a"),
    ] {
        let place = TestDir::new();
        for name in [stays, goes] {
            place.write(name, vec![0; 1000]);
        }
        let report = place.run(&[&["dups"], roots].concat()).code(0);
        place.run_with(&["dups", "remove"], report.stdout()).code(0);
        assert!(place.path(stays).exists() && !place.path(goes).exists(), "{roots:?}");
    }
}

#[test]
fn nothing_changes_in_an_unwritable_directory() {
    const UNPRIVILEGED: u32 = 65_534;
    let place = TestDir::new();
    let is_root = rustix::process::geteuid().is_root();
    for name in ["shut/a", "shut/b"] {
        let path = place.write(name, "xxx");
        if is_root {
            chown(&path, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
        }
    }
    let shut = place.path("shut");
    if is_root {
        chown(&shut, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
        fs::set_permissions(place.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o555)).unwrap();
    place.run(&["dups", "shut", "-o", "report"]).code(0);
    for action in ["remove", "link", "symlink"] {
        let report = File::open(place.path("report")).unwrap();
        let mut command = place.command(&["dups", action]);
        command.stdin(report);
        if is_root {
            command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
        }
        let output = match command.output() {
            Ok(output) => output,
            // The program may be in a directory that the unprivileged user cannot access.
            Err(error) => return haul_testing::skip(&error.to_string()),
        };
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{action}: {stderr}");
        assert!(stderr.contains("shut/b") && stderr.contains("denied"), "{action}: {stderr}");
        let [a, b] =
            ["shut/a", "shut/b"].map(|name| fs::symlink_metadata(place.path(name)).unwrap());
        assert!(a.is_file() && b.is_file() && a.ino() != b.ino(), "{action}");
        assert_eq!(fs::read_dir(&shut).unwrap().count(), 2, "{action} left a file behind");
    }
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn symbolic_link_refers_to_the_kept_file_for_any_path_form() {
    for (stays, goes) in [
        ("a", "b"),
        ("./a", "b"),
        ("a", "././b"),
        ("sub/a", "sub/b"),
        ("sub/../a", "other//b"),
        ("sub/./a", "other/../other/b"),
        ("sub//deep/../a", "sub/deep/b"),
    ] {
        let place = TestDir::new();
        for dir in ["sub/deep", "other"] {
            fs::create_dir_all(place.path(dir)).unwrap();
        }
        for name in [stays, goes] {
            place.write(name, "simple");
        }
        let report = place.run(&["dups", stays, goes]).code(0);
        place.run_with(&["dups", "symlink"], report.stdout()).code(0);
        let (kept, link) = (place.path(stays), place.path(goes));
        assert!(fs::symlink_metadata(&kept).unwrap().is_file(), "{stays} {goes}");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "{stays} {goes}");
        let inode = |path| fs::metadata(path).unwrap().ino();
        assert_eq!(inode(kept), inode(link), "{stays} {goes}");
    }
}
