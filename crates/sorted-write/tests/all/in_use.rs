//! Tests that a page file can be open only once: a second open fails, in the same process and in
//! another process.

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};

use haul_disk::OsDisk;
use haul_sorted_write::{Error, PageFile, PageFileOptions, Result};
use haul_testing::{child_test, line_with};

use crate::fixture::{add_file, disk_with, shared};
use crate::page_file::options;

const DIR: &str = "HAUL_TEST_OPENS";
const MODE: &str = "HAUL_TEST_OPENS_AND";
const TRIES: usize = 50;
const FILE_BYTES: u64 = 8 << 20;

fn open(dir: &Path) -> Result<PageFile> {
    let small = PageFileOptions { log_bytes_max: 8 << 20, ..options(40 << 10) };
    Ok(PageFile::open_path(dir.join("pages"), FILE_BYTES, small)?.0)
}

/// Returns the number of failed attempts to open the file, and the last holder reported.
fn refusals(dir: &Path) -> (usize, String) {
    let mut last = String::new();
    let is_refused = |_: &usize| match open(dir) {
        Err(Error::InUse { holder, .. }) => {
            last = holder;
            true
        }
        _ => false,
    };
    let refused = (0..TRIES).filter(is_refused).count();
    (refused, last)
}

/// The code of the other process. Without its environment variables, this test does nothing.
#[test]
fn child_opens() {
    let Some(dir) = std::env::var_os(DIR).map(PathBuf::from) else { return };
    match std::env::var(MODE).unwrap().as_str() {
        "refused" => {
            let (refused, holder) = refusals(&dir);
            println!("refused {refused} times by {holder}");
        }
        "write twice" => write_through_two_handles(&dir),
        other => unreachable!("{other}"),
    }
}

/// Writes 199 times through one handle, and as often through a second handle if the second open
/// succeeds.
fn write_through_two_handles(dir: &Path) {
    let first = open(dir).unwrap();
    first.write(0, &[1; 4096]).unwrap().wait().unwrap();
    let second = open(dir);
    let mut acknowledged = 0;
    for n in 1..200 {
        first.write(n * 8192, &[1; 4096]).unwrap().wait().unwrap();
        acknowledged += 1;
        if let Ok(second) = &second {
            second.write(n * 8192 + 4096, &[2; 4096]).unwrap().wait().unwrap();
            acknowledged += 1;
        }
    }
    println!("acknowledged {acknowledged}");
    // Blocks until the process is killed.
    drop(std::io::stdin().read(&mut [0]));
}

fn child(dir: &Path, mode: &str) -> (Child, BufReader<ChildStdout>) {
    let mut command = child_test("in_use::child_opens");
    command.env(DIR, dir).env(MODE, mode).stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    (child, lines)
}

#[test]
fn second_open_fails_in_this_and_in_another_process() {
    let dir = tempfile::tempdir().unwrap();
    let page_file = open(dir.path()).unwrap();
    let this = format!("process {}", std::process::id());
    let (refused, holder) = refusals(dir.path());
    assert!(refused == TRIES && holder.contains(&this), "{refused} {holder}");

    let (mut other, mut lines) = child(dir.path(), "refused");
    let line = line_with("refused", &mut lines);
    assert!(line.contains(&format!("refused {TRIES} times")) && line.contains(&this), "{line}");
    assert!(other.wait().unwrap().success());
    page_file.close().unwrap();
    open(dir.path()).unwrap().close().unwrap();
}

#[test]
fn second_handle_loses_no_acknowledged_page() {
    let dir = tempfile::tempdir().unwrap();
    let (mut writer, mut lines) = child(dir.path(), "write twice");
    let line = line_with("acknowledged", &mut lines);
    assert!(line.ends_with("acknowledged 199"), "the second open did not fail: {line}");
    assert_eq!(refusals(dir.path()).0, TRIES);
    writer.kill().unwrap();
    writer.wait().unwrap();

    open(dir.path()).unwrap().close().unwrap();
    let pages = std::fs::read(dir.path().join("pages")).unwrap();
    let lost = (0..200).filter(|n| pages[n * 8192] != 1 || pages[n * 8192 + 4095] != 1).count();
    assert_eq!(lost, 0);
}

#[test]
fn same_file_with_another_log_is_rejected() {
    let disk = disk_with("big", 1 << 20);
    for log in ["one.log", "other.log"] {
        haul_disk::Disk::create_dir(&disk, log).unwrap();
    }
    add_file(&disk, "other", 1 << 20);
    let open = |name: &str, log: &str| {
        let log = std::sync::Arc::new(haul_disk::Subdir::new(shared(&disk), log));
        PageFile::open(&disk, name, &(log as _), options(32 << 10)).map(|opened| opened.0)
    };
    let first = open("big", "one.log").unwrap();
    let same_file = open("big", "other.log").unwrap_err();
    let Error::InUse { path, holder } = same_file else { panic!("{same_file:?}") };
    assert!(path.ends_with("big") && holder.contains("process"), "{path:?} {holder}");
    let same_log = open("other", "one.log").unwrap_err();
    let Error::InUse { path, .. } = same_log else { panic!("{same_log:?}") };
    assert!(path.ends_with("one.log"), "{path:?}");
    open("other", "other.log").unwrap().close().unwrap();
    first.close().unwrap();
    drop(open("big", "one.log").unwrap());
}

#[test]
fn file_is_not_created_beside_a_log_with_records() {
    let dir = tempfile::tempdir().unwrap();
    let page_file = open(dir.path()).unwrap();
    assert_eq!(page_file.bytes(), FILE_BYTES);
    page_file.write(4096, b"content").unwrap().wait().unwrap();
    page_file.close().unwrap();
    let pages = dir.path().join("pages");
    assert_eq!(&std::fs::read(&pages).unwrap()[4096..4103], b"content");

    let elsewhere = dir.path().join("elsewhere");
    std::fs::rename(&pages, &elsewhere).unwrap();
    let refused = open(dir.path()).unwrap_err();
    assert!(matches!(refused, Error::LogMismatch { .. }), "{refused:?}");
    assert!(!pages.exists(), "a new file would hide the loss");
    std::fs::rename(&elsewhere, &pages).unwrap();
    drop(open(dir.path()).unwrap());

    // Imitates a creation that was interrupted before the file was extended.
    std::fs::remove_dir_all(dir.path().join("pages.log")).unwrap();
    std::fs::write(&pages, []).unwrap();
    assert_eq!(open(dir.path()).unwrap().bytes(), FILE_BYTES);
    assert!(OsDisk::open(dir.path()).is_ok());
}
