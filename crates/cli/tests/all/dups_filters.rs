//! Which files `haul dups` looks at, and which its commands leave alone: lengths, times, places.

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::time::{Duration, SystemTime};

use crate::helper::{Ended, Place};

/// How many groups a search finds.
fn groups(ended: &Ended) -> usize {
    ended.lines().iter().filter(|line| line.is_empty()).count()
}

fn search(place: &Place, arguments: &[&str]) -> Ended {
    place.run(&[&["dups", "-f", "fdupes"], arguments].concat())
}

#[test]
fn a_length_at_a_limit_is_within_it() {
    let place = Place::new();
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
fn each_length_from_nothing_on_goes_when_it_is_asked_for_and_never_else() {
    for min in 0..=4_usize {
        let place = Place::new();
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
fn a_group_is_left_when_a_file_in_it_was_changed_after_the_moment_and_not_at_it() {
    let moment = SystemTime::UNIX_EPOCH + Duration::from_secs(1_078_071_702);
    for (later, is_left) in [
        (Duration::ZERO, false),
        (Duration::from_nanos(1), true),
        (Duration::from_millis(999), true),
        (Duration::from_secs(2), true),
    ] {
        let place = Place::new();
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
fn nothing_on_stdin_is_no_search_of_the_current_directory() {
    let place = Place::new();
    place.write("a", "1234");
    place.write("b", "1234");
    for arguments in [&["--stdin"][..], &["--stdin", "-0"], &["--stdin", "--dirs"]] {
        let arguments = [&["dups", "-f", "fdupes"], arguments].concat();
        assert_eq!(place.run_with(&arguments, b"").code(0).text(), "", "{arguments:?}");
    }
}

#[test]
fn a_path_may_begin_with_a_dash() {
    let place = Place::new();
    place.write("-look-in-here/a", "1234");
    place.write("-look-in-here/b", "1234");
    for arguments in [&["--", "-look-in-here"][..], &["./-look-in-here"]] {
        let found = search(&place, arguments).code(0);
        assert_eq!((groups(&found), found.lines().len()), (1, 3));
    }
    let report = place.run(&["dups", "--", "-look-in-here"]).code(0);
    place.run_with(&["dups", "remove"], report.stdout()).code(0).tells(&["1 file (4 B) removed"]);
}

#[test]
fn links_that_lead_nowhere_are_told_when_they_are_named() {
    let place = Place::new();
    place.write("d/a", "xxx");
    place.write("d/b", "xxx");
    for name in ["link_a", "d/link_b"] {
        symlink("nowhere", place.path(name)).unwrap();
    }
    search(&place, &["link_a", "d/link_b"]).code(1).tells(&["link_a", "link_b"]);
    let found = search(&place, &["link_a", "d"]).code(1).tells(&["link_a"]);
    assert_eq!(groups(&found), 1, "the rest is found");
    for options in [&["d"][..], &["-S", "d"]] {
        assert_eq!(groups(&search(&place, options).code(0)), 1, "{options:?}");
    }
}

#[test]
fn a_hidden_directory_that_is_named_is_searched() {
    let place = Place::new();
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
fn what_comes_first_stays_however_deep_it_is() {
    for (roots, stays, goes) in [
        (&["a", "b"][..], "a", "b"),
        (&["b", "a"], "b", "a"),
        (&["a", "d/a"], "a", "d/a"),
        (&["d/a", "a"], "d/a", "a"),
        (&["d/e/f/a", "a"], "d/e/f/a", "a"),
        (&["d"], "d/a", "d/e/f/a"),
    ] {
        let place = Place::new();
        for name in [stays, goes] {
            place.write(name, vec![0; 1000]);
        }
        let report = place.run(&[&["dups"], roots].concat()).code(0);
        place.run_with(&["dups", "remove"], report.stdout()).code(0);
        assert!(place.path(stays).exists() && !place.path(goes).exists(), "{roots:?}");
    }
}

#[test]
fn in_a_directory_nobody_may_write_to_nothing_is_done_and_all_is_told() {
    const NOBODY: u32 = 65_534;
    let place = Place::new();
    let is_root = rustix::process::geteuid().is_root();
    for name in ["shut/a", "shut/b"] {
        let path = place.write(name, "xxx");
        if is_root {
            chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }
    let shut = place.path("shut");
    if is_root {
        chown(&shut, Some(NOBODY), Some(NOBODY)).unwrap();
        fs::set_permissions(place.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o555)).unwrap();
    place.run(&["dups", "shut", "-o", "report"]).code(0);
    for action in ["remove", "link", "symlink"] {
        let report = File::open(place.path("report")).unwrap();
        let mut command = place.command(&["dups", action]);
        command.stdin(report);
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        let output = match command.output() {
            Ok(output) => output,
            // The program may lie where nobody else may look.
            Err(error) => return haul_test_image::skip(&error.to_string()),
        };
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{action}: {stderr}");
        assert!(stderr.contains("shut/b") && stderr.contains("denied"), "{action}: {stderr}");
        let [a, b] =
            ["shut/a", "shut/b"].map(|name| fs::symlink_metadata(place.path(name)).unwrap());
        assert!(a.is_file() && b.is_file() && a.ino() != b.ino(), "{action}");
        assert_eq!(fs::read_dir(&shut).unwrap().count(), 2, "{action} leaves something behind");
    }
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_symbolic_link_leads_to_what_stays_however_the_paths_were_written() {
    for (stays, goes) in [
        ("a", "b"),
        ("./a", "b"),
        ("a", "././b"),
        ("sub/a", "sub/b"),
        ("sub/../a", "other//b"),
        ("sub/./a", "other/../other/b"),
        ("sub//deep/../a", "sub/deep/b"),
    ] {
        let place = Place::new();
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
