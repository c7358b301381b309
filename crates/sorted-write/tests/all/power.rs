//! The power is cut under a process that writes to a page file, again and again, with a real kernel,
//! real file systems and a disk whose write cache forgets.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;

use haul_disk::{Disk, OsDisk};
use haul_disk_sim::{Parameters, Random, SpinningDisk, replay_command, seed, tell_count};
use haul_sorted_write::{PageFile, Result};
use haul_test_image::skip;

use crate::page_file::options;

const DIR: &str = "HAUL_TEST_PAGES_ON_A_DISK";
const ROUND: &str = "HAUL_TEST_PAGES_ROUND";
const CUTS: u64 = 40;
const THREADS: u64 = 4;
const SLOTS: usize = 64;
/// No slot begins or ends where a page does.
const SLOT_BYTES: usize = 3000;

fn open(dir: &Path) -> Result<PageFile> {
    let disk = OsDisk::open(dir)?;
    let log: Arc<dyn Disk> = Arc::new(OsDisk::open(dir.join("log"))?);
    // A checkpoint after some fourteen writes.
    Ok(PageFile::open(&disk, "big", &log, options(40 << 10))?.0)
}

fn slot(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(SLOT_BYTES / 8)
}

/// Says a whole line: one without its point at the end was cut short.
fn say(what: &str) {
    writeln!(std::io::stdout().lock(), "{what} .").unwrap();
}

/// Not a test of its own: what runs until the power is cut.
#[test]
fn child_that_writes_pages_until_the_power_is_cut() {
    let (Some(dir), Ok(round)) = (std::env::var_os(DIR), std::env::var(ROUND)) else { return };
    let round: u64 = round.parse().unwrap();
    if let Err(error) = work(Path::new(&dir), round) {
        say(&format!("failed {error:?}"));
    }
}

/// Each thread has every fourth slot, and writes rising numbers.
fn work(dir: &Path, round: u64) -> Result<()> {
    let page_file = &open(dir)?;
    say("opened");
    let write = |thread: u64| -> Result<()> {
        let mut random = Random(round << 8 | thread);
        for number in round << 32.. {
            let place = random.below(SLOTS as u64 / THREADS) * THREADS + thread;
            page_file.write(place * SLOT_BYTES as u64, &slot(number))?.wait()?;
            say(&format!("acknowledged {place} {number}"));
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
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "power::child_that_writes_pages_until_the_power_is_cut", "--nocapture"])
        .env(DIR, dir)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The newest number that was acknowledged, by slot.
type Newest = [u64; SLOTS];

/// Runs a writer until the power goes, with some request of the disk; how many writes it was told of,
/// and whether it had opened the file.
fn cut_under_a_writer(
    disk: &SpinningDisk,
    dir: &Path,
    round: u64,
    random: &mut Random,
    newest: &mut Newest,
) -> (u64, bool) {
    let cuts_before = disk.counters().power_cuts;
    // Opening takes a dozen requests or more.
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
        // The first line has a name of the test before it.
        let words: Vec<_> = line.split(' ').collect();
        if let [.., "acknowledged", place, number, "."] = words[..] {
            let place: usize = place.parse().unwrap();
            newest[place] = number.parse().unwrap();
            acknowledged += 1;
        }
    }
    let status = child.wait().unwrap();
    assert!(status.success() || status.signal() == Some(9), "the writer: {status}");
    assert_eq!(disk.counters().power_cuts, cuts_before + 1, "it ended by itself: {failure}");
    (acknowledged, opened)
}

/// Every slot holds what was acknowledged last, or something written since, and is whole.
fn check(dir: &Path, newest: &Newest) {
    open(dir).unwrap().close().unwrap();
    let bytes = std::fs::read(dir.join("big")).unwrap();
    assert_eq!(bytes.len(), newest.len() * SLOT_BYTES);
    for (place, (found, least)) in bytes.chunks(SLOT_BYTES).zip(newest).enumerate() {
        let number = u64::from_le_bytes(found[..8].try_into().unwrap());
        assert!(found == slot(number), "{place} is torn");
        assert!(number >= *least, "{place}: {least} was acknowledged, {number} is there");
    }
}

/// Cuts the power again and again on one file system, and says how often.
fn cut_again_and_again(fs: &str, bytes: u64, seed: u64) -> Option<u64> {
    let mut options = haul_disk_sim::Options::new(Parameters::travelstar_7k320(), bytes);
    options.time_scale = 0.0;
    let disk = match SpinningDisk::start(&options) {
        Ok(disk) => disk,
        Err(why) => {
            skip(&why);
            return None;
        }
    };
    disk.make(fs, if fs == "ext4" { &["-q", "-F"] } else { &["-q", "-f"] }).unwrap();
    let mounted = disk.mount(fs, "").unwrap();
    std::fs::create_dir(mounted.path().join("log")).unwrap();
    std::fs::write(mounted.path().join("big"), slot(0).repeat(SLOTS)).unwrap();
    rustix::fs::syncfs(std::fs::File::open(mounted.path()).unwrap()).unwrap();
    drop(mounted);
    let (mut random, mut newest) = (Random(seed), [0; SLOTS]);
    let (mut acknowledged, mut short) = (0, 0);
    for round in 1..=CUTS {
        println!("cut {round} on {fs}; {}", replay_command(seed));
        let mounted = disk.mount(fs, "").unwrap();
        // Sometimes the next writer finds what the cut left, and is cut while it recovers.
        if random.below(3) > 0 {
            check(&mounted.path(), &newest);
        }
        let (told, opened) =
            cut_under_a_writer(&disk, &mounted.path(), round, &mut random, &mut newest);
        acknowledged += told;
        short += u64::from(!opened);
        drop(mounted);
        disk.power_on().unwrap();
    }
    let mounted = disk.mount(fs, "").unwrap();
    check(&mounted.path(), &newest);
    println!("{fs}: {acknowledged} writes acknowledged, {short} cuts while it was opened");
    assert!(acknowledged > 1000 && short > 0);
    Some(disk.counters().power_cuts)
}

#[test]
fn every_page_acknowledged_before_the_power_went_is_there_on_a_real_file_system() {
    let seed = seed();
    println!("SEED={seed}");
    let Some(on_ext4) = cut_again_and_again("ext4", 96 << 20, seed) else { return };
    let Some(on_xfs) = cut_again_and_again("xfs", 320 << 20, seed) else { return };
    tell_count(&format!("{on_ext4} power cuts on ext4, {on_xfs} on xfs"), seed);
    assert!(on_ext4 + on_xfs >= 2 * CUTS);
}
