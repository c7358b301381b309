//! Repeated power cuts under a process with storing and deleting threads, on a real kernel, real
//! file systems, and a disk with a volatile write cache.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::thread::{self, ScopedJoinHandle};

use haul_disk::DeviceKind;
use haul_disk_sim::{Options, Parameters, SpinningDisk, print_count};
use haul_file_store::{Options as StoreOptions, Result, Store};
use haul_testing::{PrintOnPanic, Random, child_test, depth, replay_command, seed, skip};

use crate::kill::{Objects, THREADS, acts, check, objects};
use crate::{BUCKET, big_files, reopen, small, try_put};

const DIR: &str = "FILE_STORE_POWER_DIR";
const SEED: &str = "FILE_STORE_POWER_SEED";

/// Not a test: the program of the process under which the power is cut. It prints a line for each
/// acknowledged act, until all calls fail.
#[test]
fn process_without_power() {
    let (Ok(dir), Ok(seed)) = (std::env::var(DIR), std::env::var(SEED)) else { return };
    let seed: u64 = seed.parse().unwrap();
    // In every other process, reads and syncs take turns.
    let kinds = [DeviceKind::SolidState, DeviceKind::Rotational];
    let disk_kind = Some(kinds[usize::try_from(seed % 2).unwrap()]);
    let store = match Store::open(Path::new(&dir), StoreOptions { disk_kind, ..small() }) {
        Ok((store, _)) => store,
        Err(error) => return println!("failed {error:?}"),
    };
    let works = |thread| -> Result<()> {
        for (number, (key, bytes)) in acts(seed, thread).enumerate() {
            match bytes {
                Some(bytes) => drop(try_put(&store, &key, &bytes)?),
                None => drop(store.delete(BUCKET, &key)?),
            }
            println!("ack {thread} {} .", number + 1);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let (works, mut threads) = (&works, Vec::new());
        for thread in 0..THREADS {
            let works = move || works(thread).map_err(|error| println!("failed {error:?}"));
            threads.push(scope.spawn(works));
        }
        // If there is no volume to compact, compaction succeeds even without power.
        while !threads.iter().all(ScopedJoinHandle::is_finished) && store.compact().is_ok() {}
    });
}

/// Runs the process until the power is cut, either with a random request of the disk or after a
/// random act. Returns the number of acknowledged acts by thread.
fn cut_under_it(
    disk: &SpinningDisk,
    dir: &Path,
    seed: u64,
    random: &mut Random,
) -> BTreeMap<u64, usize> {
    let cuts_before = disk.counters().power_cuts;
    let (until, requests) = match random.below(2) {
        0 => (None, random.below(600)),
        _ => (Some(1 + random.below(300)), u64::MAX),
    };
    disk.power_cut_after(requests, seed);
    let mut child = child_test("power::process_without_power")
        .env(DIR, dir)
        .env(SEED, seed.to_string())
        .spawn()
        .unwrap();
    let (mut acknowledged, mut lines) = (BTreeMap::new(), 0);
    let mut failure = String::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        // The last line may be truncated.
        let line = line.unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["ack", thread, number, "."] => {
                acknowledged.insert(thread.parse().unwrap(), number.parse().unwrap());
                lines += 1;
                if until == Some(lines) {
                    disk.power_cut(seed).unwrap();
                    child.kill().unwrap();
                }
            }
            ["failed", ..] => failure = line,
            _ => {}
        }
    }
    let status = child.wait().unwrap();
    assert!(status.success() || status.signal() == Some(9), "the process: {status}");
    assert_eq!(
        disk.counters().power_cuts,
        cuts_before + 1,
        "the process ended on its own: {failure}"
    );
    acknowledged
}

/// Returns the number of power cuts on each file system.
fn cuts() -> u64 {
    5 * depth()
}

/// Cuts the power repeatedly on one file system. Returns the number of cuts.
fn cut_again_and_again(fs: &str, bytes: u64, first: u64) -> Option<u64> {
    let mut options = Options::new(Parameters::travelstar_7k320(), bytes);
    options.time_scale = 0.0;
    let disk = SpinningDisk::start(&options).map_err(|why| skip(&why)).ok()?;
    disk.mkfs(fs, if fs == "ext4" { &["-q", "-F"] } else { &["-q", "-f"] }).unwrap();
    let (mut before, mut random, mut acts) = (Objects::new(), Random(first), 0);
    let mut mounted = disk.mount(fs, "").unwrap();
    let store = reopen(&mounted.path().join("store")).0;
    store.create_bucket(BUCKET).unwrap();
    store.close().unwrap();
    for round in 0..cuts() {
        let seed = first.wrapping_add(round);
        let _context = PrintOnPanic(format!("cut {round} on {fs}\n{}", replay_command(first)));
        let acknowledged = cut_under_it(&disk, &mounted.path().join("store"), seed, &mut random);
        drop(mounted);
        disk.power_on().unwrap();

        // Mounting replays the journal.
        mounted = disk.mount(fs, "").unwrap();
        let dir = mounted.path().join("store");
        let (store, recovered) = reopen(&dir);
        assert_eq!(recovered.damage, []);
        let found = objects(&store);
        for thread in 0..THREADS {
            let acknowledged = acknowledged.get(&thread).copied().unwrap_or(0);
            check(&found, &before, seed, thread, acknowledged);
            acts += acknowledged;
        }
        assert_eq!(big_files(&dir).len() as u64, store.stats().big_files);
        store.close().unwrap();
        before = found;
    }
    println!("{fs}: {acts} acts acknowledged, {} objects", before.len());
    Some(disk.counters().power_cuts)
}

#[test]
fn acknowledged_acts_survive_power_cuts_on_real_file_systems() {
    let seed = seed();
    println!("SEED={seed}");
    let Some(on_ext4) = cut_again_and_again("ext4", 128 << 20, seed) else { return };
    let Some(on_xfs) = cut_again_and_again("xfs", 320 << 20, seed) else { return };
    print_count(&format!("{on_ext4} power cuts on ext4, {on_xfs} on xfs"), seed);
    assert_eq!(on_ext4 + on_xfs, 2 * cuts());
}
