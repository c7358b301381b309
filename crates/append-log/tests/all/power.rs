//! The power is cut under a process that appends, again and again, with a real kernel, real file
//! systems and a disk whose write cache forgets.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;

use haul_append_log::{Log, Lsn, Options, Room, SyncMethod, Ticket};
use haul_disk::OsDisk;
use haul_disk_sim::{Parameters, Random, SpinningDisk, replay_command, seed, tell_count};
use haul_test_image::skip;

use crate::payload::payload;
use crate::promised::{AT_ONCE, Promised, id};
use crate::{Opened, open, open_on, small};

const DIR: &str = "HAUL_TEST_APPENDS_ON_A_DISK";
const ROUND: &str = "HAUL_TEST_ROUND";
const CUTS: u64 = 110;
const THREADS: u64 = 4;

/// Not a test of its own: what runs until the power is cut.
#[test]
fn child_that_appends_until_the_power_is_cut() {
    let (Some(dir), Ok(round)) = (std::env::var_os(DIR), std::env::var(ROUND)) else { return };
    let round: u64 = round.parse().unwrap();
    if let Err(error) = work(Path::new(&dir), round) {
        say(&format!("failed {error:?}"));
    }
}

/// Says a whole line: one without its point at the end was cut short.
fn say(what: &str) {
    writeln!(std::io::stdout().lock(), "{what} .").unwrap();
}

/// Opens, takes something back now and then, appends from several threads, removes from the front.
fn work(dir: &Path, round: u64) -> haul_append_log::Result<()> {
    // In each way of syncing, and in the one that is found to be the fastest.
    let ways = [Some(SyncMethod::Buffered), Some(SyncMethod::Direct), None];
    let sync_method = ways[usize::try_from(round % 3).unwrap()];
    let options = Options { sync_method, spare_segments_max: 1, ..small() };
    let Opened { log, records, .. } = open_on(Arc::new(OsDisk::open(dir)?), options)?;
    say("opened");
    let back = records.len().checked_sub(1 + usize::try_from(round % 40).unwrap());
    if let Some(from) = back.filter(|_| round.is_multiple_of(4)) {
        say(&format!("taking {}", records[from].0.lsn.0));
        log.truncate_back(records[from].0.lsn)?;
        say("taken");
    }
    drop(records);
    let log = &log;
    thread::scope(|scope| {
        let append = |thread| scope.spawn(move || append(log, round, thread));
        let threads: Vec<_> = (0..THREADS).map(append).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).fold(Ok(()), Result::and)
    })
}

fn append(log: &Log, round: u64, thread: u64) -> haul_append_log::Result<()> {
    let mut random = Random(id(round, thread, 0));
    let mut count = 0;
    loop {
        let until = count + 1 + random.below(AT_ONCE);
        let tickets = (count..until).map(|count| {
            let bytes = usize::try_from(8 + random.below(6000)).unwrap();
            log.append(&[&payload(id(round, thread, count), bytes)], Room::Ordinary)
        });
        let tickets = tickets.collect::<haul_append_log::Result<Vec<Ticket>>>()?;
        for (count, ticket) in (count..).zip(tickets) {
            say(&format!("acknowledged {} {}", id(round, thread, count), ticket.wait()?.lsn.0));
        }
        count = until;
        if thread == 0 {
            remove_old_segments(log)?;
        }
    }
}

/// Lets two segments stay.
fn remove_old_segments(log: &Log) -> haul_append_log::Result<()> {
    let segments = log.segments();
    let Some(first) = segments.iter().rev().nth(1).map(|segment| segment.number) else {
        return Ok(());
    };
    if first > segments[0].number {
        say(&format!("removing {first}"));
        log.truncate_front(Lsn::new(first, 0))?;
        say(&format!("removed {first}"));
    }
    Ok(())
}

fn start_child(dir: &Path, round: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "power::child_that_appends_until_the_power_is_cut", "--nocapture"])
        .env(DIR, dir)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// How a life of the writer went.
#[derive(Debug, Default)]
struct Life {
    acknowledged: u64,
    /// The power went while the log was being opened.
    is_short: bool,
}

/// Runs a writer until the power goes: with some request of the disk, or after some acknowledgement.
fn cut_under_a_writer(
    disk: &SpinningDisk,
    dir: &Path,
    round: u64,
    random: &mut Random,
    promised: &mut Promised,
) -> Life {
    let cuts_before = disk.counters().power_cuts;
    let (seed, mut life) = (random.number(), Life { is_short: true, ..Life::default() });
    // Opening is some dozens of requests.
    let (until, requests) = match random.below(4) {
        0 => (None, random.below(40)),
        1 => (None, random.below(400)),
        _ => (Some(1 + random.below(300)), u64::MAX),
    };
    disk.power_cut_after(requests, seed);
    let mut child = start_child(dir, round);
    let lines = BufReader::new(child.stdout.take().unwrap());
    let mut failure = String::new();
    // The last line may be cut short.
    for line in lines.lines() {
        let line = line.unwrap();
        life.is_short &= line != "opened .";
        life.acknowledged += u64::from(promised.hears(&line));
        if line.starts_with("failed ") {
            failure = line;
        } else if until == Some(life.acknowledged) && disk.counters().power_cuts == cuts_before {
            disk.power_cut(seed).unwrap();
            child.kill().unwrap();
        }
    }
    let status = child.wait().unwrap();
    assert!(status.success() || status.signal() == Some(9), "the writer: {status}");
    assert_eq!(disk.counters().power_cuts, cuts_before + 1, "it ended by itself: {failure}");
    life
}

/// Says where it was when a check fails.
struct Told(String);

impl Drop for Told {
    fn drop(&mut self) {
        if thread::panicking() {
            println!("{}", self.0);
        }
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
    let mut random = Random(seed);
    let mut promised = Promised::default();
    let (mut acknowledged, mut short, mut looks) = (0, 0, 0);
    for round in 0..CUTS {
        let _told = Told(format!("in cut {round} on {fs}\n{}", replay_command(seed)));
        // Mounting replays the journal.
        let mounted = disk.mount(fs, "").unwrap();
        let dir = mounted.path().join("log");
        if round == 0 {
            std::fs::create_dir(&dir).unwrap();
            // A log answers for what is in its directory; the name is its maker's to sync.
            File::open(mounted.path()).unwrap().sync_all().unwrap();
        // Sometimes the next writer finds what the cut left, and is cut while it recovers.
        } else if random.below(3) > 0 {
            let opened = open(&dir);
            promised.check(&opened.records);
            opened.log.close().unwrap();
            looks += 1;
        }
        let life = cut_under_a_writer(&disk, &dir, round, &mut random, &mut promised);
        acknowledged += life.acknowledged;
        short += u64::from(life.is_short);
        drop(mounted);
        disk.power_on().unwrap();
    }
    let mounted = disk.mount(fs, "").unwrap();
    promised.check(&open(&mounted.path().join("log")).records);
    println!(
        "{fs}: {acknowledged} records acknowledged, {} segments removed, {} takings back, {short} \
         cuts while it was opened, looked at {} times",
        promised.removals,
        promised.takings,
        looks + 1
    );
    assert!(promised.removals > 20 && promised.takings > 5 && short > 2);
    Some(disk.counters().power_cuts)
}

#[test]
fn whatever_was_acknowledged_before_the_power_went_is_there_on_a_real_file_system() {
    let seed = seed();
    println!("SEED={seed}");
    let Some(on_ext4) = cut_again_and_again("ext4", 96 << 20, seed) else { return };
    let Some(on_xfs) = cut_again_and_again("xfs", 320 << 20, seed) else { return };
    tell_count(&format!("{on_ext4} power cuts on ext4, {on_xfs} on xfs"), seed);
    assert!(on_ext4 + on_xfs >= 200);
}
