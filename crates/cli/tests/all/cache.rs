//! Tests `haul cache`: its output must agree with the state of the page cache.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use haul_disk::{Disk, Map, Open, OsDisk, resident};
use haul_testing::eventually;
use rustix::fs::{Advice, Timespec, Timestamps, fadvise, futimens};
use serde_json::Value;

use crate::helper::{TestDir, noise};

/// Creates a synced file of `pages` pages, which are in the page cache.
fn file(place: &TestDir, name: &str, pages: usize) -> File {
    let path = place.write(name, noise(1, pages * page()));
    let file = File::options().read(true).write(true).open(path).unwrap();
    file.sync_all().unwrap();
    file
}

fn page() -> usize {
    rustix::param::page_size()
}

fn resident_pages(path: &Path) -> u64 {
    let file = File::open(path).unwrap();
    resident(&file.as_fd(), 0, u64::MAX).unwrap().resident_bytes / page() as u64
}

/// Evicts a file. The kernel may have isolated some of the pages in order to reclaim them: such
/// pages cannot be evicted at once.
fn evict(place: &TestDir, name: &str) {
    eventually("all pages are evicted", || {
        place.run(&["cache", "evict", name]).code(0);
        resident_pages(&place.path(name)) == 0
    });
}

/// Runs a subcommand with `--json`; returns the rows and the summary.
fn json(place: &TestDir, arguments: &[&str]) -> (Vec<Value>, Value) {
    let ended = place.run(&[&["cache"], arguments, &["--json"]].concat()).code(0);
    let mut lines: Vec<Value> =
        ended.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let summary = lines.pop().unwrap();
    assert_eq!(summary["kind"], "summary");
    (lines, summary)
}

#[test]
fn bar_shows_which_parts_of_a_file_are_cached() {
    let place = TestDir::on_disk();
    let file = file(&place, "file", 64);
    evict(&place, "file");
    fadvise(&file, 0, None, Advice::Random).unwrap();
    // These reads cache the first eight of the 32 cells, and one page of the last cell.
    file.read_exact_at(&mut vec![0; 16 * page()], 0).unwrap();
    file.read_exact_at(&mut [0], 63 * page() as u64).unwrap();

    let (rows, summary) = json(&place, &["status", "file"]);
    assert_eq!((&summary["resident_pages"], &summary["pages"]), (&17.into(), &64.into()));
    let cells: Vec<f64> =
        rows[0]["windows"].as_array().unwrap().iter().map(|cell| cell.as_f64().unwrap()).collect();
    let expected: Vec<f64> = (0..32)
        .map(|cell| {
            if cell < 8 {
                1.0
            } else if cell == 31 {
                0.5
            } else {
                0.0
            }
        })
        .collect();
    assert_eq!(cells, expected);
    assert_eq!(resident_pages(&place.path("file")), 17, "status must not change it");

    let ended = place.run(&["cache", "status", "file"]).code(0);
    let bar = format!("▕{}{}▒▏", "█".repeat(8), "·".repeat(23));
    assert!(ended.text().contains(&bar), "{}", ended.text());
    assert!(ended.text().contains("(26.6 %, 17 of 64 pages)"), "{}", ended.text());
}

#[test]
fn warm_loads_all_pages_and_evict_drops_them() {
    let place = TestDir::on_disk();
    let sizes = [300, 1, 40, 0, 700];
    for (number, pages) in sizes.into_iter().enumerate() {
        file(&place, &format!("d/{number}/f"), pages);
    }
    let all: usize = sizes.iter().sum();
    let (_, evicted) = json(&place, &["evict", "d"]);
    assert_eq!((&evicted["evicted_pages"], &evicted["resident_pages"]), (&all.into(), &0.into()));
    let (_, warmed) = json(&place, &["warm", "d"]);
    assert_eq!((&warmed["resident_pages"], &warmed["files"]), (&all.into(), &5.into()));
    assert_eq!(warmed["resident_pages_before"], 0);
    let (_, status) = json(&place, &["status", "d"]);
    assert_eq!(status["resident_pages"], all);
    let again = place.run(&["cache", "warm", "d"]).code(0);
    assert!(again.text().starts_with("loaded 0 B"), "{}", again.text());
}

#[test]
fn warm_respects_max_bytes() {
    let place = TestDir::on_disk();
    for name in ["d/a", "d/b", "d/c"] {
        file(&place, name, 100);
    }
    for name in ["d/a", "d/b", "d/c"] {
        evict(&place, name);
    }
    let bytes = (150 * page()).to_string();
    let ended = place.run(&["cache", "warm", "--max-bytes", &bytes, "d"]).code(0);
    assert!(ended.text().contains("--max-bytes allows"), "{}", ended.text());
    let now = ["d/a", "d/b", "d/c"].map(|name| resident_pages(&place.path(name)));
    assert_eq!(now, [100, 50, 0], "sorted by name");
}

#[test]
fn warm_and_evict_do_not_change_atime() {
    let place = TestDir::on_disk();
    let file = file(&place, "file", 10);
    let at = |seconds| Timespec { tv_sec: seconds, tv_nsec: 0 };
    // On a file system mounted with relatime, a read updates an atime that is older than the mtime.
    futimens(&file, &Timestamps { last_access: at(1000), last_modification: at(2000) }).unwrap();
    place.run(&["cache", "evict", "file"]).code(0);
    place.run(&["cache", "warm", "file"]).code(0);
    assert_eq!(resident_pages(&place.path("file")), 10);
    assert_eq!(fs::metadata(place.path("file")).unwrap().atime(), 1000);
}

#[test]
fn remaining_pages_are_reported_with_a_reason() {
    let place = TestDir::on_disk();
    file(&place, "d/mapped", 30);
    let path = place.write("d/dirty", noise(2, 50 * page()));
    let disk = OsDisk::open(place.path("d")).unwrap();
    let mapped = disk.open("mapped", Open::default()).unwrap();
    let mut map = Map::of(mapped, 30 * page()).unwrap();
    map.write(&noise(3, 30 * page()), 0).unwrap();
    map.sync(0, 30 * page()).unwrap();

    // The kernel may or may not write dirty pages back before the eviction.
    let (_, summary) = json(&place, &["evict", "d"]);
    let stayed = &summary["stayed_pages"];
    assert_eq!(stayed["in_use"], 30, "{summary}");
    let pages = |name: &str| stayed[name].as_u64().unwrap();
    let evicted = summary["evicted_pages"].as_u64().unwrap();
    assert_eq!(evicted + pages("dirty") + pages("writeback") + 30, 80, "{summary}");

    let ended = place.run(&["cache", "evict", "--sync", "d"]).code(0);
    assert_eq!(resident_pages(&path), 0);
    assert!(ended.text().contains("not evicted: mapped"), "{}", ended.text());
    drop(map);
    let (_, summary) = json(&place, &["evict", "d"]);
    assert_eq!((&summary["evicted_pages"], &summary["resident_pages"]), (&30.into(), &0.into()));
}

#[test]
fn hard_links_count_once_and_links_are_followed_only_if_named() {
    let place = TestDir::on_disk();
    file(&place, "d/one", 3);
    file(&place, "other", 5);
    fs::hard_link(place.path("d/one"), place.path("d/another")).unwrap();
    symlink("../other", place.path("d/link")).unwrap();
    let counts = |arguments: &[&str]| {
        let (_, summary) = json(&place, &[&["status"], arguments].concat());
        (summary["files"].as_u64().unwrap(), summary["pages"].as_u64().unwrap())
    };
    assert_eq!(counts(&["d"]), (1, 3));
    assert_eq!(counts(&["d", "d/one", "d"]), (1, 3));
    assert_eq!(counts(&["d/link"]), (1, 5));
    assert_eq!(counts(&["d", "d/link"]), (2, 8));
}

#[test]
fn top_cached_files_are_shown_or_all() {
    let place = TestDir::on_disk();
    for (name, pages) in [("d/a", 2), ("d/b", 9), ("d/.c", 5), ("d/e\n", 7)] {
        file(&place, name, pages);
    }
    let names = |arguments: &[&str]| {
        let (rows, _) = json(&place, &[&["status", "d"], arguments].concat());
        rows.iter().map(|row| row["path"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&["--top", "2"]), ["d/b", "d/e\n"]);
    assert_eq!(names(&["--files"]), ["d/.c", "d/a", "d/b", "d/e\n"]);
    assert_eq!(names(&["--top", "1", "d/a"]), ["d/a", "d/b"], "named files are always shown");
    assert!(names(&["--top", "0"]).is_empty());
    let ended = place.run(&["cache", "status", "--top", "2", "d"]).code(0);
    assert!(ended.text().contains("and 2 more files; --files shows all"), "{}", ended.text());
    assert_eq!(ended.lines().len(), 4, "one line each: {}", ended.text());
}

#[test]
fn failures_are_reported_and_other_files_processed() {
    let place = TestDir::on_disk();
    file(&place, "file", 3);
    rustix::fs::mkfifoat(rustix::fs::CWD, place.path("pipe"), rustix::fs::Mode::RUSR).unwrap();
    for what in ["status", "warm", "evict"] {
        let ended =
            place.run(&["cache", what, "nowhere", "pipe", "file"]).code(3).stderr_contains(&[
                "nowhere: No such file",
                "pipe is not a file or directory",
                "skipped 2 paths",
            ]);
        assert!(ended.text().contains("1 file"), "{}", ended.text());
    }
    place.run(&["cache", "status"]).code(2).stderr_contains(&["PATH"]);
}

#[test]
fn warm_and_evict_work_on_files_of_other_users() {
    if !rustix::process::geteuid().is_root() {
        return haul_testing::skip("requires root");
    }
    // The unprivileged user must be able to access both the program and the file.
    let place = TestDir::new();
    fs::set_permissions(place.path("."), fs::Permissions::from_mode(0o755)).unwrap();
    let program = place.path("haul");
    fs::copy(env!("CARGO_BIN_EXE_haul"), &program).unwrap();
    file(&place, "file", 50);
    let as_other_user = |what: &str| {
        let mut command = Command::new(&program);
        command.args(["cache", what, "file"]).current_dir(place.path(".")).uid(65534).gid(65534);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, stdout) = as_other_user("evict");
    assert!(code == Some(0) && stdout.contains("in files of other users"), "{stdout}");
    let remaining = resident_pages(&place.path("file"));
    let (code, stdout) = as_other_user("warm");
    assert!(code == Some(0) && stdout.contains("in files of other users"), "{stdout}");
    assert_eq!(resident_pages(&place.path("file")), 50, "{remaining} before");
    assert_eq!(as_other_user("status").0, Some(1), "residency is not reported");
}
