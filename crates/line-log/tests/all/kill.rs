//! Tests that written lines survive if a logging process is killed repeatedly (`SIGKILL`).

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::thread;

use haul_disk::OsDisk;
use haul_testing::{Random, child_test};

use crate::{all, disk_dir, line, numbers, open, small};

const DIR: &str = "HAUL_TEST_LOGS_IN";
const ROUND: &str = "HAUL_TEST_ROUND";
const ROUNDS: u64 = 20;
const THREADS: u64 = 3;

/// The body of the killed child process; returns at once if run as a test.
#[test]
fn child_appends_until_killed() {
    let (Some(dir), Ok(round)) = (std::env::var_os(DIR), std::env::var(ROUND)) else { return };
    let round: u64 = round.parse().unwrap();
    let log = open(&PathBuf::from(dir), small());
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let log = &log;
            scope.spawn(move || {
                let mut random = Random(round * THREADS + thread);
                for number in (thread..1_000_000).step_by(usize::try_from(THREADS).unwrap()) {
                    let number = round * 1_000_000 + number;
                    let bytes = usize::try_from(10 + random.below(600)).unwrap();
                    log.append(&line(number, bytes)).unwrap();
                    if random.below(4) == 0 {
                        log.write_out().unwrap();
                        let mut out = std::io::stdout().lock();
                        writeln!(out, "written {number}").unwrap();
                    }
                }
            });
        }
    });
}

#[test]
fn written_out_lines_survive_sigkill() {
    let dir = disk_dir();
    let mut random = Random::from_environment();
    let mut written: Vec<u64> = Vec::new();
    for round in 0..ROUNDS {
        let mut child = child_test("kill::child_appends_until_killed")
            .env(DIR, dir.path())
            .env(ROUND, round.to_string())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let until = 1 + random.below(60);
        let (mut seen, mut output) = (0, String::new());
        while lines.read_line(&mut output).unwrap() > 0 {
            // Ignore a line truncated by the kill.
            if let Some(rest) = output.strip_prefix("written ").filter(|l| l.ends_with('\n')) {
                let last: u64 = rest.trim().parse().unwrap();
                // All earlier lines of the same thread are written, too.
                let first = last - (last % 1_000_000) % THREADS;
                let thread = (last % 1_000_000) % THREADS;
                let thread_numbers = first - first % 1_000_000 + thread..=last;
                written.extend(thread_numbers.step_by(usize::try_from(THREADS).unwrap()));
                seen += 1;
                if seen == until {
                    child.kill().unwrap();
                }
            }
            output.clear();
        }
        child.wait().unwrap();
        assert!(seen >= until, "round {round}: the child ended by itself");
        written.sort_unstable();
        written.dedup();
        let mut found = numbers(&all(&OsDisk::open(dir.path()).unwrap()));
        found.sort_unstable();
        assert!(found.is_sorted_by(|a, b| a < b), "round {round}: a line is duplicated");
        let is_found = |number: &u64| found.binary_search(number).is_ok();
        assert!(written.iter().all(is_found), "round {round}: a written line is lost");
    }
    println!("{} lines written out in {ROUNDS} rounds", written.len());
}
