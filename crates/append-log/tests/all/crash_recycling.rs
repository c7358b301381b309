//! A power cut or a kill at every step of a log whose segments are removed and used again, whose
//! records are taken back, whose disk is full, and whose medium fails.

use std::sync::Arc;

use haul_append_log::{Error, Options, Room};
use haul_disk::{Disk, Op};
use rustix::io::Errno;

use crate::history::{Ended, History, Known};
use crate::memory::{Medium, MemoryDisk, Step, Survival};
use crate::payload::{Random, ids, payload};
use crate::{Note, Opened, open_on, put, small};

/// Numbers of records appended after a crash.
const AFTERWARDS: u64 = 1 << 32;

fn options() -> Options {
    Options { reserve_bytes: 16 << 10, ..small() }
}

/// Does anything a log can do, in an order that the seed decides.
fn history(seed: u64, turns: u64) -> Ended {
    let mut random = Random(seed);
    let mut history = History::begin(options());
    for _ in 0..turns {
        match random.below(16) {
            // Whole pages: what follows them on the medium is not overwritten by chance.
            0..5 => history.put(&[8192 - 32; 3], Room::Ordinary).unwrap(),
            5..9 => history.put(&[60_000; 9], Room::Ordinary).unwrap(),
            9 => history.put(&[8, 700, 3000, 100], Room::Ordinary).unwrap(),
            10..12 => history.truncate_front(1 + index(random.below(2))).unwrap(),
            12..14 => {
                let there = history.now.acknowledged.len();
                let back = index(1 + random.below(12)).min(there);
                history.truncate_back(there - back).unwrap();
            }
            14 => history.reopen(),
            _ if random.below(2) == 0 => fill_the_disk(&mut history),
            _ => fail_the_medium(&mut history, &mut random),
        }
    }
    history.end()
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap()
}

/// No new file can be made until the log is full, and its reserve too.
fn fill_the_disk(history: &mut History) {
    history.faulty.fail_always(Op::Create, Errno::NOSPC);
    for (bytes, room) in [(60_000, Room::Ordinary), (3000, Room::Reserve)] {
        while match history.put(&[bytes], room) {
            Ok(()) => true,
            Err(Error::Full { .. }) => false,
            Err(other) => panic!("{other}"),
        } {}
    }
    history.faulty.heal();
    history.put(&[1000], Room::Ordinary).unwrap();
}

/// A write or sync fails under appending or under a truncation, and the log is opened again.
fn fail_the_medium(history: &mut History, random: &mut Random) {
    let op = if random.below(3) == 0 { Op::Write } else { Op::Sync };
    history.faulty.fail_once(op, 1 + random.below(2), Errno::IO);
    let there = history.now.acknowledged.len();
    let failed = match random.below(2) {
        0 => history.put(&[8192 - 32; 5], Room::Ordinary),
        _ => history.truncate_back(there.saturating_sub(3)),
    };
    if failed.is_ok() {
        drop(history.put(&[20_000], Room::Ordinary));
    }
    // What the thread that prepares met is told to whoever needs the segment, and not final.
    history.faulty.heal();
    history.reopen();
}

fn start(medium: &Medium, options: &Options) -> (MemoryDisk, Opened) {
    let disk = MemoryDisk::on(medium);
    let opened = open_on(Arc::new(disk.clone()) as Arc<dyn Disk>, options.clone()).unwrap();
    (disk, opened)
}

/// What was delivered stays, and what is appended now survives the next power cut.
fn goes_on(disk: &MemoryDisk, opened: Opened, known: &Known, options: &Options) {
    let Opened { log, records, .. } = opened;
    let mut expected = ids(&records);
    for id in [AFTERWARDS, AFTERWARDS + 1] {
        let at = put(&log, &payload(id, 8192 - 32));
        known.check_new(at.lsn);
        expected.insert(id, at.lsn);
    }
    let medium = disk.medium();
    drop(log);
    let (_, again) = start(&medium.cut(Survival::Nothing), options);
    assert_eq!(ids(&again.records), expected, "after the next power cut");
}

/// A power cut at every step of a recovery.
fn recover_again(
    left: &Medium,
    recovery: &[Step],
    known: &Known,
    options: &Options,
    seed: u64,
) -> u64 {
    let (mut medium, mut states) = (left.clone(), 0);
    for (number, step) in recovery.iter().enumerate() {
        medium.take(step);
        let _note = Note(format!("a second cut after step {number} of the recovery"));
        let (disk, opened) =
            start(&medium.cut(Survival::Half { seed: seed + number as u64 }), options);
        known.check(&opened.records);
        goes_on(&disk, opened, known, options);
        states += 2;
    }
    states
}

/// Cuts the power after one of `every` steps; which, and what survives, the seed decides.
fn crash_everywhere(ended: &Ended, seed: u64, every: u64) -> u64 {
    let (mut random, mut states) = (Random(seed), 0);
    ended.after_each_step(|number, medium, known| {
        if random.below(every) != 0 {
            return;
        }
        let seed = random.next();
        let survival = match random.below(5) {
            0 => Some(Survival::Nothing),
            1 => Some(Survival::Everything),
            2 => Some(Survival::Half { seed }),
            3 => Some(Survival::Most { seed }),
            _ => None,
        };
        let _note = Note(format!("a crash after step {number}, {survival:?}"));
        // Where the process is killed, what was on its way to the medium still is.
        let left = survival.map_or_else(|| medium.clone(), |survival| medium.cut(survival));
        let (disk, opened) = start(&left, &ended.options);
        known.check(&opened.records);
        states += 2;
        if random.below(16) == 0 {
            states += recover_again(&left, &disk.steps(), known, &ended.options, seed);
        }
        goes_on(&disk, opened, known, &ended.options);
    });
    states
}

#[test]
fn a_crash_at_any_step_of_anything_a_log_can_do_loses_and_brings_back_nothing() {
    let mut states = 0;
    let first = u64::from(std::process::id());
    for seed in first..first + 4 {
        let _note = Note(format!("the history of seed {seed}"));
        let ended = history(seed, 24);
        states += crash_everywhere(&ended, seed, 4);
    }
    println!("{states} crash states, seeds from {first}");
    assert!(states > 500, "{states}");
}
