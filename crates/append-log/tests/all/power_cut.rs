//! Cuts the power under an appending process repeatedly, with the real kernel, real file systems
//! and a simulated disk that loses its write cache.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Child;
use std::sync::Arc;
use std::thread;

use haul_append_log::{Log, Lsn, Options, SpacePriority, SyncMethod, Ticket};
use haul_disk::{DeviceKind, OsDisk, scheduled};
use haul_disk_sim::{Parameters, SpinningDisk, print_count};
use haul_testing::{PrintOnPanic, Random, child_test, replay_command, seed, skip};

use crate::payload::payload;
use crate::promises::{AT_ONCE, Promises, id};
use crate::{OpenedLog, open, open_on, small};

const DIR: &str = "HAUL_TEST_APPENDS_ON_A_DISK";
const ROUND: &str = "HAUL_TEST_ROUND";
const CUTS: u64 = 110;
const THREADS: u64 = 4;

/// Runs in the appending process. Returns at once if the test runner calls it as a test.
#[test]
fn child_appends_until_power_cut() {
    let (Some(dir), Ok(round)) = (std::env::var_os(DIR), std::env::var(ROUND)) else { return };
    let round: u64 = round.parse().unwrap();
    if let Err(error) = work(Path::new(&dir), round) {
        report(&format!("failed {error:?}"));
    }
}

/// Prints a line. The period at its end shows that it is complete.
fn report(line: &str) {
    writeln!(std::io::stdout().lock(), "{line} .").unwrap();
}

/// Opens the log, truncates it sometimes, appends from several threads, and removes segments.
fn work(dir: &Path, round: u64) -> haul_append_log::Result<()> {
    // With `None`, opening the log measures the methods and selects one.
    let methods = [Some(SyncMethod::Buffered), Some(SyncMethod::Direct), None];
    let sync_method = methods[usize::try_from(round % 3).unwrap()];
    let options = Options { sync_method, spare_segments_max: 1, ..small() };
    // On every other one, reads and syncs take turns.
    let kinds = [DeviceKind::SolidState, DeviceKind::Rotational];
    let kind = kinds[usize::try_from(round % 2).unwrap()];
    let disk = scheduled(Arc::new(OsDisk::open(dir)?), Some(kind));
    let OpenedLog { log, records, .. } = open_on(disk, options)?;
    report("opened");
    let back = records.len().checked_sub(1 + usize::try_from(round % 40).unwrap());
    if let Some(from) = back.filter(|_| round.is_multiple_of(4)) {
        report(&format!("truncating {}", records[from].0.lsn.0));
        log.truncate_back(records[from].0.lsn)?;
        report("truncated");
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
            log.append(&[&payload(id(round, thread, count), bytes)], SpacePriority::Ordinary)
        });
        let tickets = tickets.collect::<haul_append_log::Result<Vec<Ticket>>>()?;
        for (count, ticket) in (count..).zip(tickets) {
            report(&format!("acknowledged {} {}", id(round, thread, count), ticket.wait()?.lsn.0));
        }
        count = until;
        if thread == 0 {
            remove_old_segments(log)?;
        }
    }
}

/// Removes all but two segments.
fn remove_old_segments(log: &Log) -> haul_append_log::Result<()> {
    let segments = log.segments();
    let Some(first) = segments.iter().rev().nth(1).map(|segment| segment.number) else {
        return Ok(());
    };
    if first > segments[0].number {
        report(&format!("removing {first}"));
        log.truncate_front(Lsn::new(first, 0))?;
        report(&format!("removed {first}"));
    }
    Ok(())
}

fn start_child(dir: &Path, round: u64) -> Child {
    child_test("power_cut::child_appends_until_power_cut")
        .env(DIR, dir)
        .env(ROUND, round.to_string())
        .spawn()
        .unwrap()
}

/// The outcome of one run of the writer.
#[derive(Debug, Default)]
struct Run {
    acknowledged: u64,
    /// `true` if the power was cut while the log was being opened.
    is_short: bool,
}

/// Runs a writer, and cuts the power after a number of disk requests or of acknowledged records.
fn cut_under_a_writer(
    disk: &SpinningDisk,
    dir: &Path,
    round: u64,
    random: &mut Random,
    promises: &mut Promises,
) -> Run {
    let cuts_before = disk.counters().power_cuts;
    let (seed, mut run) = (random.number(), Run { is_short: true, ..Run::default() });
    // Opening a log takes a few dozen requests, so some of these cuts happen while it is opened.
    let (until, requests) = match random.below(4) {
        0 => (None, random.below(40)),
        1 => (None, random.below(400)),
        _ => (Some(1 + random.below(300)), u64::MAX),
    };
    disk.power_cut_after(requests, seed);
    let mut child = start_child(dir, round);
    let lines = BufReader::new(child.stdout.take().unwrap());
    let mut failure = String::new();
    // The last line may be truncated.
    for line in lines.lines() {
        let line = line.unwrap();
        run.is_short &= line != "opened .";
        run.acknowledged += u64::from(promises.parse_line(&line));
        if line.starts_with("failed ") {
            failure = line;
        } else if until == Some(run.acknowledged) && disk.counters().power_cuts == cuts_before {
            disk.power_cut(seed).unwrap();
            child.kill().unwrap();
        }
    }
    let status = child.wait().unwrap();
    assert!(status.success() || status.signal() == Some(9), "the writer: {status}");
    assert_eq!(
        disk.counters().power_cuts,
        cuts_before + 1,
        "the writer ended by itself: {failure}"
    );
    run
}

/// Cuts the power repeatedly on one file system. Returns the number of cuts.
fn cut_repeatedly(fs: &str, bytes: u64, seed: u64) -> Option<u64> {
    let mut options = haul_disk_sim::Options::new(Parameters::travelstar_7k320(), bytes);
    options.time_scale = 0.0;
    let disk = match SpinningDisk::start(&options) {
        Ok(disk) => disk,
        Err(reason) => {
            skip(&reason);
            return None;
        }
    };
    disk.mkfs(fs, if fs == "ext4" { &["-q", "-F"] } else { &["-q", "-f"] }).unwrap();
    let mut random = Random(seed);
    let mut promises = Promises::default();
    let (mut acknowledged, mut short, mut checks) = (0, 0, 0);
    for round in 0..CUTS {
        let _guard = PrintOnPanic(format!("cut {round} on {fs}\n{}", replay_command(seed)));
        // Mounting makes the file system replay its journal.
        let mounted = disk.mount(fs, "").unwrap();
        let dir = mounted.path().join("log");
        if round == 0 {
            std::fs::create_dir(&dir).unwrap();
            // The log syncs the names in its directory. The caller must sync the name of the
            // directory itself.
            File::open(mounted.path()).unwrap().sync_all().unwrap();
        // If this round does not open the log, the next writer recovers it, and the power may be
        // cut during recovery.
        } else if random.below(3) > 0 {
            let opened = open(&dir);
            promises.check(&opened.records);
            opened.log.close().unwrap();
            checks += 1;
        }
        let run = cut_under_a_writer(&disk, &dir, round, &mut random, &mut promises);
        acknowledged += run.acknowledged;
        short += u64::from(run.is_short);
        drop(mounted);
        disk.power_on().unwrap();
    }
    let mounted = disk.mount(fs, "").unwrap();
    promises.check(&open(&mounted.path().join("log")).records);
    println!(
        "{fs}: {acknowledged} records acknowledged, {} segments removed, {} truncations, {short} \
         cuts during opening, {} checks",
        promises.removals,
        promises.truncations,
        checks + 1
    );
    assert!(promises.removals > 20 && promises.truncations > 5 && short > 2);
    Some(disk.counters().power_cuts)
}

#[test]
fn acknowledged_records_survive_power_cuts_on_ext4_and_xfs() {
    let seed = seed();
    println!("SEED={seed}");
    let Some(on_ext4) = cut_repeatedly("ext4", 96 << 20, seed) else { return };
    let Some(on_xfs) = cut_repeatedly("xfs", 320 << 20, seed) else { return };
    print_count(&format!("{on_ext4} power cuts on ext4, {on_xfs} on xfs"), seed);
    assert!(on_ext4 + on_xfs >= 200);
}
