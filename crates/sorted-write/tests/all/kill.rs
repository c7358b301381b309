//! Tests that acknowledged writes survive when the process that writes to a page file is killed.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use haul_disk::{Disk, OsDisk};
use haul_sorted_write::PageFile;
use haul_testing::{Random, child_test, seed};

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

/// The code of the killed process. Without its environment variables, this test does nothing.
#[test]
fn child_writes_until_killed() {
    let (Some(dir), Ok(first)) = (std::env::var_os(DIR), std::env::var(FIRST)) else { return };
    let first: u64 = first.parse().unwrap();
    let page_file = open(Path::new(&dir));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let page_file = &page_file;
            scope.spawn(move || {
                for number in first.. {
                    // Each thread owns every fourth slot.
                    let index = (number * 7 % (SLOTS / THREADS)) * THREADS + thread;
                    let offset = index * SLOT_BYTES as u64;
                    page_file.write(offset, &slot(number)).unwrap().wait().unwrap();
                    writeln!(std::io::stdout().lock(), "acknowledged {index} {number}").unwrap();
                }
            });
        }
    });
}

#[test]
fn acknowledged_writes_survive_sigkill() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("log")).unwrap();
    std::fs::write(dir.path().join("big"), slot(0).repeat(64)).unwrap();
    let mut random = Random(seed());
    println!("SEED={}", random.0);
    let mut newest = [0_u64; 64];
    let mut first = 1;
    for _ in 0..12 {
        let mut child = child_test("kill::child_writes_until_killed")
            .env(DIR, dir.path())
            .env(FIRST, first.to_string())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut record = |line: &str| {
            let mut words = line.split_whitespace().skip_while(|word| *word != "acknowledged");
            let mut number = || words.nth(1).and_then(|word| word.parse::<u64>().ok());
            let index = number();
            // The kill may truncate the line. It is then unknown whether the write was
            // acknowledged.
            let number = line.rsplit(' ').next().and_then(|word| word.parse().ok());
            if let (Some(index), Some(number)) = (index, number) {
                let index = usize::try_from(index).unwrap();
                newest[index] = newest[index].max(number);
            }
        };
        for _ in 0..1 + random.below(150) {
            record(&lines.next().expect("the child writes until it is killed").unwrap());
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let mut rest: Vec<String> = lines.map_while(Result::ok).collect();
        rest.pop();
        rest.iter().for_each(|line| record(line));

        let page_file = open(dir.path());
        for (index, least) in newest.iter().enumerate() {
            let mut found = vec![0; SLOT_BYTES];
            page_file.read((index * SLOT_BYTES) as u64, &mut found).unwrap();
            let number = u64::from_le_bytes(found[..8].try_into().unwrap());
            assert!(found == slot(number), "slot {index} is torn");
            assert!(number >= *least, "slot {index}: {least} was acknowledged, found {number}");
        }
        first = newest.iter().max().unwrap() + 100;
    }
    assert!(first > 1200);
}
