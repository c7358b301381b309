//! Kills (`SIGKILL`) an appending process repeatedly, and tests that no acknowledged record is
//! lost.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::thread;

use haul_append_log::{Log, Lsn};
use haul_testing::{Random, child_test};

use crate::payload::{id_of, ids, payload};
use crate::{copy_of, disk_dir, open, put};

const DIR: &str = "HAUL_TEST_APPENDS_IN";
const FIRST: &str = "HAUL_TEST_FIRST_RECORD";
const ROUNDS: u64 = 200;
const THREADS: u64 = 4;

/// Runs in the process to be killed. Returns at once if the test runner calls it as a test.
#[test]
fn child_appends_until_killed() {
    let (Some(dir), Ok(first)) = (std::env::var_os(DIR), std::env::var(FIRST)) else { return };
    let first: u64 = first.parse().unwrap();
    let log = open(&PathBuf::from(dir)).log;
    thread::scope(|scope| {
        let log = &log;
        scope.spawn(move || remove_old_segments(log));
        if (first >> 32).is_multiple_of(2) {
            scope.spawn(move || {
                let mut reader = log.reader(Lsn::default());
                while let Some((at, bytes)) = reader.wait_next(None).unwrap() {
                    assert!(id_of(bytes).is_some(), "{}", at.lsn);
                }
            });
        }
        for thread in 0..THREADS {
            scope.spawn(move || {
                let mut random = Random(first + thread);
                for id in (first + thread..).step_by(usize::try_from(THREADS).unwrap()) {
                    let bytes = usize::try_from(8 + random.below(6000)).unwrap();
                    let at = put(log, &payload(id, bytes));
                    let mut out = std::io::stdout().lock();
                    writeln!(out, "acknowledged {id} {}", at.lsn.0).unwrap();
                }
            });
        }
    });
}

/// Removes all but two segments repeatedly, printing a line before and after each removal.
fn remove_old_segments(log: &Log) {
    let mut reader = log.reader(log.synced());
    loop {
        // Waits for the next synced record.
        reader.wait_next(None).unwrap();
        let segments = log.segments();
        let Some(first) = segments.iter().rev().nth(1).map(|segment| segment.number) else {
            continue;
        };
        if first > segments[0].number {
            writeln!(std::io::stdout().lock(), "removing {first} 0").unwrap();
            log.truncate_front(Lsn::new(first, 0)).unwrap();
            writeln!(std::io::stdout().lock(), "removed {first} 0").unwrap();
        }
    }
}

#[test]
fn acknowledged_records_survive_sigkill() {
    let dir = disk_dir();
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut random = Random(seed);
    let mut acknowledged: Vec<(u64, Lsn)> = Vec::new();
    let (mut removing, mut removed, mut total) = (0, 0, 0);
    for round in 0..ROUNDS {
        let mut child = child_test("kill::child_appends_until_killed")
            .env(DIR, dir.path())
            .env(FIRST, (round << 32).to_string())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let until = 1 + random.below(60);
        let (mut seen, mut line) = (0, String::new());
        while lines.read_line(&mut line).unwrap() > 0 {
            // Ignores a line truncated by the kill.
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                _ if !line.ends_with('\n') => {}
                ["acknowledged", id, lsn] => {
                    acknowledged.push((id.parse().unwrap(), Lsn(lsn.parse().unwrap())));
                    seen += 1;
                    if seen == until {
                        child.kill().unwrap();
                    }
                }
                ["removing", segment, "0"] => removing = segment.parse().unwrap(),
                ["removed", segment, "0"] => removed = segment.parse().unwrap(),
                _ => {}
            }
            line.clear();
        }
        child.wait().unwrap();
        assert!(seen >= until, "round {round}: the child ended by itself");

        // Half of the rounds open and close the log itself. The others open a copy, so that the
        // next process opens the log as the killed process left it.
        let copy = (random.below(2) == 0).then(|| copy_of(dir.path()));
        let opened = open(copy.as_ref().unwrap_or(&dir).path());
        let found = ids(&opened.records);
        total += seen;
        acknowledged.retain(|(_, lsn)| lsn.segment() >= removing);
        let is_back = |lsn: &&Lsn| lsn.segment() < removed;
        assert_eq!(found.values().find(is_back), None, "round {round}: a removed record is back");
        let is_found = |(id, lsn): &(u64, Lsn)| found.get(id) == Some(lsn);
        assert!(acknowledged.iter().all(is_found), "round {round}: an acknowledged record is lost");
        opened.log.close().unwrap();
    }
    println!("{total} records acknowledged, {removed} segments removed in {ROUNDS} rounds");
    assert!(removed > 5, "{removed}");
}
