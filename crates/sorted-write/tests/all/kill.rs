//! A process that writes to a page file is killed without warning, again and again.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use haul_disk::{Disk, OsDisk};
use haul_disk_sim::{Random, seed};
use haul_sorted_write::PageFile;

use crate::page_file::options;

const DIR: &str = "HAUL_TEST_WRITES_IN";
const FIRST: &str = "HAUL_TEST_FIRST_NUMBER";
const THREADS: u64 = 4;
const SLOTS: u64 = 64;
const SLOT_BYTES: usize = 3000;

fn open(dir: &Path) -> PageFile {
    let disk = OsDisk::open(dir).unwrap();
    let log: Arc<dyn Disk> = Arc::new(OsDisk::open(dir.join("log")).unwrap());
    PageFile::open(&disk, "big", &log, options(40 << 10)).unwrap().0
}

fn slot(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(SLOT_BYTES / 8)
}

/// Not a test of its own: what the killed process runs.
#[test]
fn child_that_writes_until_it_is_killed() {
    let (Some(dir), Ok(first)) = (std::env::var_os(DIR), std::env::var(FIRST)) else { return };
    let first: u64 = first.parse().unwrap();
    let page_file = open(Path::new(&dir));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let page_file = &page_file;
            scope.spawn(move || {
                for number in first.. {
                    // Each thread has every fourth slot.
                    let place = (number * 7 % (SLOTS / THREADS)) * THREADS + thread;
                    let offset = place * SLOT_BYTES as u64;
                    page_file.write(offset, &slot(number)).unwrap().wait().unwrap();
                    writeln!(std::io::stdout().lock(), "acknowledged {place} {number}").unwrap();
                }
            });
        }
    });
}

#[test]
fn whatever_a_killed_process_acknowledged_is_there() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("log")).unwrap();
    std::fs::write(dir.path().join("big"), slot(0).repeat(64)).unwrap();
    let mut random = Random(seed());
    println!("SEED={}", random.0);
    let mut newest = [0_u64; 64];
    let mut first = 1;
    for _ in 0..12 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::child_that_writes_until_it_is_killed", "--nocapture"])
            .env(DIR, dir.path())
            .env(FIRST, first.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut note = |line: &str| {
            let mut words = line.split_whitespace().skip_while(|word| *word != "acknowledged");
            let mut number = || words.nth(1).and_then(|word| word.parse::<u64>().ok());
            let place = number();
            // The line may be cut by the kill; then nobody was told.
            let number = line.rsplit(' ').next().and_then(|word| word.parse().ok());
            if let (Some(place), Some(number)) = (place, number) {
                let place = usize::try_from(place).unwrap();
                newest[place] = newest[place].max(number);
            }
        };
        for _ in 0..1 + random.below(150) {
            note(&lines.next().expect("it writes until it is killed").unwrap());
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let mut rest: Vec<String> = lines.map_while(Result::ok).collect();
        rest.pop();
        rest.iter().for_each(|line| note(line));

        let page_file = open(dir.path());
        for (place, least) in newest.iter().enumerate() {
            let mut found = vec![0; SLOT_BYTES];
            page_file.read((place * SLOT_BYTES) as u64, &mut found).unwrap();
            let number = u64::from_le_bytes(found[..8].try_into().unwrap());
            assert!(found == slot(number), "{place} is torn");
            assert!(number >= *least, "{place}: {least} was acknowledged, {number} is there");
        }
        first = newest.iter().max().unwrap() + 100;
    }
    assert!(first > 1200);
}
