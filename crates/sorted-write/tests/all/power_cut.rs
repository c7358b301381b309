//! Cuts the power repeatedly while a process writes to a page file, with the real kernel, real file
//! systems and a simulated disk that loses its write cache.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::thread;

use haul_disk::{Disk, OsDisk};
use haul_disk_sim::{Parameters, SpinningDisk, print_count};
use haul_sorted_write::{PageFile, Result};
use haul_testing::{Random, child_test, depth, replay_command, seed, skip};

use crate::page_file::options;

const DIR: &str = "HAUL_TEST_PAGES_ON_A_DISK";
const ROUND: &str = "HAUL_TEST_PAGES_ROUND";
const THREADS: u64 = 4;
const SLOTS: usize = 64;
/// The length of a slot in bytes. It is not a multiple of a page, so writes cross page boundaries.
const SLOT_BYTES: usize = 3000;

fn open(dir: &Path) -> Result<PageFile> {
    let disk = OsDisk::open(dir)?;
    let log: Arc<dyn Disk> = Arc::new(OsDisk::open(dir.join("log"))?);
    // A checkpoint starts about every 14 writes.
    Ok(PageFile::open(&disk, "big", &log, options(40 << 10))?.0)
}

fn slot(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(SLOT_BYTES / 8)
}

/// Prints a line that ends with a period. A line without the period was truncated.
fn report(text: &str) {
    writeln!(std::io::stdout().lock(), "{text} .").unwrap();
}

/// The code of the process that writes until the power is cut. Without its environment variables,
/// this test does nothing.
#[test]
fn child_writes_until_power_cut() {
    let (Some(dir), Ok(round)) = (std::env::var_os(DIR), std::env::var(ROUND)) else { return };
    let round: u64 = round.parse().unwrap();
    if let Err(error) = write_slots(Path::new(&dir), round) {
        report(&format!("failed {error:?}"));
    }
}

/// Writes ascending numbers from several threads, each to every fourth slot.
fn write_slots(dir: &Path, round: u64) -> Result<()> {
    let page_file = &open(dir)?;
    report("opened");
    let write = |thread: u64| -> Result<()> {
        let mut random = Random(round << 8 | thread);
        for number in round << 32.. {
            let index = random.below(SLOTS as u64 / THREADS) * THREADS + thread;
            page_file.write(index * SLOT_BYTES as u64, &slot(number))?.wait()?;
            report(&format!("acknowledged {index} {number}"));
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> =
            (0..THREADS).map(|thread| scope.spawn(move || write(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).fold(Ok(()), Result::and)
    })
}

fn start_child(dir: &Path, round: u64) -> Child {
    child_test("power_cut::child_writes_until_power_cut")
        .env(DIR, dir)
        .env(ROUND, round.to_string())
        .spawn()
        .unwrap()
}

/// The newest acknowledged number of each slot.
type Newest = [u64; SLOTS];

/// Runs a writer until the power is cut at a random request. Returns the number of acknowledged
/// writes, and `true` if the page file was opened.
fn cut_during_writes(
    disk: &SpinningDisk,
    dir: &Path,
    round: u64,
    random: &mut Random,
    newest: &mut Newest,
) -> (u64, bool) {
    let cuts_before = disk.counters().power_cuts;
    // Opening takes at least a dozen requests.
    let requests = if random.below(4) == 0 { random.below(12) } else { random.below(2000) };
    disk.power_cut_after(requests, random.number());
    let mut child = start_child(dir, round);
    let (mut acknowledged, mut opened, mut failure) = (0, false, String::new());
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        opened |= line.ends_with("opened .");
        if line.starts_with("failed ") {
            failure.clone_from(&line);
        }
        // The test harness prints the test name before the first line.
        let words: Vec<_> = line.split(' ').collect();
        if let [.., "acknowledged", index, number, "."] = words[..] {
            let index: usize = index.parse().unwrap();
            newest[index] = number.parse().unwrap();
            acknowledged += 1;
        }
    }
    let status = child.wait().unwrap();
    assert!(status.success() || status.signal() == Some(9), "the writer: {status}");
    assert_eq!(
        disk.counters().power_cuts,
        cuts_before + 1,
        "the writer exited before the power cut: {failure}"
    );
    (acknowledged, opened)
}

/// Checks that each slot is not torn and holds the last acknowledged number or a later one.
fn check(dir: &Path, newest: &Newest) {
    open(dir).unwrap().close().unwrap();
    let bytes = std::fs::read(dir.join("big")).unwrap();
    assert_eq!(bytes.len(), newest.len() * SLOT_BYTES);
    for (index, (found, least)) in bytes.chunks(SLOT_BYTES).zip(newest).enumerate() {
        let number = u64::from_le_bytes(found[..8].try_into().unwrap());
        assert!(found == slot(number), "slot {index} is torn");
        assert!(number >= *least, "slot {index}: {least} was acknowledged, found {number}");
    }
}

/// A file system on which the power is cut.
struct Format {
    name: &'static str,
    fs: &'static str,
    mkfs_options: &'static [&'static str],
    bytes: u64,
    /// `true` if a power cut leaves metadata that `e2fsck` must repair before the next mount.
    needs_repair: bool,
}

const FORMATS: [Format; 3] = [
    Format {
        name: "ext4",
        fs: "ext4",
        mkfs_options: &["-q", "-F"],
        bytes: 96 << 20,
        needs_repair: false,
    },
    Format {
        name: "ext4 without a journal",
        fs: "ext4",
        mkfs_options: &["-q", "-F", "-O^has_journal"],
        bytes: 96 << 20,
        needs_repair: true,
    },
    Format {
        name: "xfs",
        fs: "xfs",
        mkfs_options: &["-q", "-f"],
        bytes: 320 << 20,
        needs_repair: false,
    },
];

/// Repairs a file system as the boot scripts of a machine do, but answers all questions with yes.
fn repair(device: &str) {
    let status = Command::new("e2fsck").args(["-f", "-y", device]).output().unwrap().status;
    // 1: errors were corrected.
    assert!(matches!(status.code(), Some(0 | 1)), "e2fsck: {status}");
}

/// Returns the number of power cuts on each file system.
fn cuts() -> u64 {
    10 * depth()
}

/// Cuts the power repeatedly on one file system; returns the number of cuts.
fn cut_repeatedly(format: &Format, seed: u64) -> Option<u64> {
    let Format { name, fs, mkfs_options, bytes, needs_repair } = *format;
    let mut options = haul_disk_sim::Options::new(Parameters::travelstar_7k320(), bytes);
    options.time_scale = 0.0;
    let disk = match SpinningDisk::start(&options) {
        Ok(disk) => disk,
        Err(reason) => {
            skip(&reason);
            return None;
        }
    };
    disk.mkfs(fs, mkfs_options).unwrap();
    let mounted = disk.mount(fs, "").unwrap();
    std::fs::create_dir(mounted.path().join("log")).unwrap();
    std::fs::write(mounted.path().join("big"), slot(0).repeat(SLOTS)).unwrap();
    rustix::fs::syncfs(std::fs::File::open(mounted.path()).unwrap()).unwrap();
    drop(mounted);
    let (mut random, mut newest) = (Random(seed), [0; SLOTS]);
    let (mut acknowledged, mut short) = (0, 0);
    for round in 1..=cuts() {
        println!("cut {round} on {name}; {}", replay_command(seed));
        let mounted = disk.mount(fs, "").unwrap();
        // If the check is skipped, the next writer executes the recovery, which the next cut may
        // interrupt.
        if random.below(3) > 0 {
            check(&mounted.path(), &newest);
        }
        let (writes, opened) =
            cut_during_writes(&disk, &mounted.path(), round, &mut random, &mut newest);
        acknowledged += writes;
        short += u64::from(!opened);
        drop(mounted);
        disk.power_on().unwrap();
        if needs_repair {
            repair(disk.device());
        }
    }
    let mounted = disk.mount(fs, "").unwrap();
    check(&mounted.path(), &newest);
    println!("{name}: {acknowledged} writes acknowledged, {short} cuts during open");
    assert!(acknowledged > 0, "no write was acknowledged");
    Some(disk.counters().power_cuts)
}

#[test]
fn acknowledged_pages_survive_power_cuts() {
    let seed = seed();
    println!("SEED={seed}");
    let mut all = 0;
    for format in &FORMATS {
        let Some(more) = cut_repeatedly(format, seed) else { return };
        print_count(&format!("{more} power cuts on {}", format.name), seed);
        all += more;
    }
    assert!(all >= FORMATS.len() as u64 * cuts());
}
