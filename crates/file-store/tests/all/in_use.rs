//! A store is open at most once, in the same process and in all processes.

use std::fs;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Arc;

use haul_disk_sim::MemoryDisk;
use haul_file_store::{Error, Store};
use haul_testing::{child_test, line_with};

use crate::{get, new_store, put, random_bytes, reopen, small};

const DIR: &str = "FILE_STORE_OPENS";
const HOLDS: &str = "FILE_STORE_HOLDS";
const TRIES: usize = 50;

/// Tries to open the store repeatedly. Returns the number of refusals and the last reported holder.
fn refusals(dir: &Path) -> (usize, String) {
    let mut last = String::new();
    let is_refused = |_: &usize| match Store::open(dir, small()).map(drop) {
        Err(Error::InUse { dir: named, holder }) => {
            assert_eq!(named, dir);
            last = holder;
            true
        }
        _ => false,
    };
    ((0..TRIES).filter(is_refused).count(), last)
}

/// Not a test: the program of the other process.
#[test]
fn child_that_opens() {
    let Some(dir) = std::env::var_os(DIR).map(PathBuf::from) else { return };
    if std::env::var_os(HOLDS).is_none() {
        let (refused, holder) = refusals(&dir);
        return println!("refused {refused} times by {holder}");
    }
    let _held = reopen(&dir);
    println!("held by {}", std::process::id());
    // Waits until it is killed.
    drop(std::io::stdin().read(&mut [0]));
}

fn child(dir: &Path, holds: bool) -> (Child, BufReader<ChildStdout>) {
    let mut command = child_test("in_use::child_that_opens");
    command.env(DIR, dir);
    if holds {
        command.env(HOLDS, "yes");
    }
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    (child, lines)
}

#[test]
fn second_opener_is_refused_in_the_same_and_in_another_process() {
    let (dir, store) = new_store();
    let this = format!("process {}", std::process::id());
    let (refused, holder) = refusals(dir.path());
    assert!(refused == TRIES && holder.contains(&this), "{refused} {holder}");
    let (mut other, mut lines) = child(dir.path(), false);
    let line = line_with("refused", &mut lines);
    assert!(line.contains(&format!("refused {TRIES} times")) && line.contains(&this), "{line}");
    assert!(other.wait().unwrap().success());
    put(&store, "key", b"content");
    store.close().unwrap();
    reopen(dir.path());
}

#[test]
fn store_of_a_killed_process_opens_at_once() {
    let (dir, store) = new_store();
    store.close().unwrap();
    let (mut holder, mut lines) = child(dir.path(), true);
    line_with("held by", &mut lines);
    assert_eq!(refusals(dir.path()).0, TRIES);
    holder.kill().unwrap();
    holder.wait().unwrap();
    reopen(dir.path());
}

#[test]
fn store_on_any_disk_is_open_once() {
    let disk = MemoryDisk::default();
    let open = || Store::open_on(Arc::new(disk.clone()), small()).map(|opened| opened.0);
    let store = open().unwrap();
    let steps = disk.steps().len();
    assert!(matches!(open(), Err(Error::InUse { .. })));
    assert_eq!(disk.steps().len(), steps);
    drop(store);
    open().unwrap();
}

/// The directory of the volumes belongs to a log, which creates a lock file in it.
#[test]
fn lock_files_of_an_unfinished_store_are_not_foreign_files() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("volumes")).unwrap();
    for name in ["LOCK", "volumes/LOCK"] {
        fs::write(dir.path().join(name), "process 1").unwrap();
    }
    Store::open(dir.path(), small()).unwrap();
}

/// Copies a directory by hard links, as `cp -rl` does.
fn link_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => link_all(&entry.path(), &to),
            false => fs::hard_link(entry.path(), to).unwrap(),
        }
    }
}

/// Fails if two stores write to files that they share.
#[test]
fn copy_by_hard_links_is_a_store_of_its_own() {
    let (dir, store) = new_store();
    let content = |store: u64, n: u64| random_bytes(1000 * store + n, 60_000);
    (0..90).for_each(|n| drop(put(&store, &n.to_string(), &content(0, n))));
    drop(store);
    let other = dir.path().with_extension("copy");
    link_all(dir.path(), &other);
    let stores = [dir.path(), &*other].map(|dir| reopen(dir).0);
    for round in 0..3 {
        for (number, store) in (1..).zip(&stores) {
            for n in (0..90).filter(|n| n % 3 == round) {
                put(store, &n.to_string(), &content(number, n));
            }
            store.compact().unwrap();
        }
    }
    drop(stores);
    for (number, dir) in (1..).zip([dir.path(), &*other]) {
        let (store, recovered) = reopen(dir);
        assert_eq!(recovered.damage, []);
        assert!((0..90).all(|n| get(&store, &n.to_string()) == content(number, n)), "{number}");
        assert_eq!(store.verify(&mut |_, _| {}).unwrap().damage, []);
    }
    fs::remove_dir_all(other).unwrap();
}
