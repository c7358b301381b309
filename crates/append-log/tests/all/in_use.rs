//! Tests that a log cannot be opened twice for writing, in the same process or in another one.

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Arc;

use haul_append_log::{Error, Log, Position};
use haul_disk_sim::MemoryDisk;
use haul_testing::{child_test, line_with};

use crate::payload::{ids, payload};
use crate::{disk_dir, open, open_on, put, small, try_open};

const DIR: &str = "HAUL_TEST_OPENS";
const HOLDS: &str = "HAUL_TEST_HOLDS";
const TRIES: u32 = 50;

/// Tries to open the log and returns the holder of each refusal.
fn refusals(dir: &Path) -> Vec<String> {
    let refusal = |_| match try_open(dir, small()).map(drop) {
        Err(Error::InUse { dir: named, holder }) => {
            assert_eq!(named, dir);
            Some(holder)
        }
        other => panic!("{other:?}"),
    };
    (0..TRIES).filter_map(refusal).collect()
}

/// Runs in the other process. Returns at once if the test runner calls it as a test.
#[test]
fn child_that_opens() {
    let Some(dir) = std::env::var_os(DIR).map(PathBuf::from) else { return };
    if std::env::var_os(HOLDS).is_none() {
        let holders = refusals(&dir);
        return println!("refused {} times by {}", holders.len(), holders[0]);
    }
    let log = open(&dir).log;
    put(&log, &payload(1, 100));
    println!("held by {}", std::process::id());
    // Blocks until it is killed.
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
fn second_opener_is_refused_in_same_and_other_process() {
    let dir = disk_dir();
    let log = open(dir.path()).log;
    put(&log, &payload(0, 100));
    let this = format!("process {}", std::process::id());
    let holders = refusals(dir.path());
    assert_eq!(holders.len(), TRIES as usize);
    assert!(holders.iter().all(|holder| holder.contains(&this)), "{holders:?}");

    let (mut other, mut lines) = child(dir.path(), false);
    let line = line_with("refused", &mut lines);
    assert!(line.contains(&format!("refused {TRIES} times")) && line.contains(&this), "{line}");
    assert!(other.wait().unwrap().success());

    put(&log, &payload(1, 100));
    log.close().unwrap();
    assert!(ids(&open(dir.path()).records).keys().copied().eq(0..2));
}

#[test]
fn log_of_a_killed_process_opens_at_once() {
    let dir = disk_dir();
    for round in 0..5 {
        let (mut holder, mut lines) = child(dir.path(), true);
        line_with("held by", &mut lines);
        let holders = refusals(dir.path());
        let id = format!("process {}", holder.id());
        assert!(holders.iter().all(|holder| holder.contains(&id)), "{holders:?}");
        holder.kill().unwrap();
        holder.wait().unwrap();
        assert_eq!(open(dir.path()).records.len(), round + 1);
    }
}

#[test]
fn refused_opener_changes_nothing_and_a_failed_one_releases_the_lock() {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    put(&log, &payload(0, 100));
    let steps = disk.steps().len();
    let refused = open_on(Arc::new(disk.clone()), small()).map(drop);
    assert!(matches!(refused, Err(Error::InUse { .. })), "{refused:?}");
    assert_eq!(disk.steps().len(), steps);
    drop(log);
    disk.fail_once(haul_disk::Op::List, 1, rustix::io::Errno::IO);
    assert!(open_on(Arc::new(disk.clone()), small()).is_err());
    assert_eq!(open_on(Arc::new(disk), small()).unwrap().records.len(), 1);
}

#[test]
fn missing_directory_is_created() {
    let dir = disk_dir();
    let below = dir.path().join("some/log");
    let mut ignored = |_: Position, _: &[u8]| {};
    let (log, recovered) = Log::open_dir(&below, small(), &mut ignored).unwrap();
    assert!(recovered.closed);
    put(&log, &payload(0, 100));
    drop(log);
    assert_eq!(open(&below).records.len(), 1);
}
