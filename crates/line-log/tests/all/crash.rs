//! The machine stops at every step of a workload, and at steps of the next run.

use std::collections::BTreeMap;

use haul_disk_sim::{Crash, Crashes, Device, Medium, MemoryDisk, Survival, crash_everywhere};

use crate::{all, line, numbers, open_on, small};

/// The first line of a run that goes on after a crash has this number or a greater one.
const AFTERWARDS: u64 = 90_000_000;

/// So many lines are synced, and those with these numbers.
#[derive(Debug, Clone, Default)]
struct Synced {
    lines: u64,
    afterwards: Vec<u64>,
}

/// Brings lines, and waits for something after a few; gives how many they were.
fn workload(disk: &MemoryDisk) -> u64 {
    let log = open_on(disk, small());
    let mut next = 0;
    for round in 0..30 {
        for _ in 0..=round {
            log.append(&line(next, 100)).unwrap();
            next += 1;
        }
        match round % 3 {
            0 => log.rotate().unwrap(),
            1 => log.sync().unwrap(),
            _ => {
                log.write_out().unwrap();
                continue;
            }
        }
        disk.note(Synced { lines: next, ..Synced::default() });
    }
    log.close().unwrap();
    disk.note(Synced { lines: next, ..Synced::default() });
    next
}

/// A run after a crash brings the line of this number.
struct Brought(u64);

/// Everything synced is there, and the next run goes on behind it.
fn recover(end: u64, crash: &Crash) {
    let mut synced = crash.notes::<Synced>().last().cloned().unwrap_or_default();
    let new = crash.notes().last().map_or(AFTERWARDS, |Brought(last)| last + 1);
    crash.disk.note(Brought(new));
    let log = open_on(&crash.disk, small());
    log.append(&line(new, 20)).unwrap();
    log.close().unwrap();
    synced.afterwards.push(new);
    crash.disk.note(synced.clone());
    let mut found = BTreeMap::new();
    for number in numbers(&all(&crash.disk)) {
        *found.entry(number).or_insert(0) += 1;
    }
    let is_once = |number: &u64| found.get(number) == Some(&1);
    assert!(synced.afterwards.iter().all(is_once), "what comes next is not glued to anything");
    assert!((0..synced.lines).all(|n| is_once(&n)), "{} were synced", synced.lines);
    assert!(found.keys().all(|number| *number < end || (AFTERWARDS..=new).contains(number)));
}

/// A log was killed between the making of its current file and the sync of the name; the next run
/// saw the file, synced only its bytes, and lost all of it with the power.
#[test]
fn a_file_whose_maker_was_killed_keeps_what_the_next_run_synced() {
    let disk = MemoryDisk::default();
    let log = open_on(&disk, small());
    log.append(&line(0, 100)).unwrap();
    log.rotate().unwrap();
    log.close().unwrap();
    let mut medium = Medium::default();
    for step in disk.steps() {
        medium.take(&step);
        let killed = MemoryDisk::on(&medium);
        let log = open_on(&killed, small());
        log.append(&line(1, 100)).unwrap();
        log.sync().unwrap();
        let left = MemoryDisk::on(&killed.medium().cut(Survival::Nothing));
        assert!(numbers(&all(&left)).contains(&1), "killed after {step:?}");
    }
}

#[test]
fn what_was_synced_survives_a_crash_at_any_step() {
    // Where a line comes from lines cannot tell: blocks of other files would pass for some.
    let crashes = Crashes { worst: Device::LengthsFirst, ..Crashes::default() };
    let states = crash_everywhere(&crashes, workload, |end, crash| recover(*end, crash));
    assert!(states > 1000, "{states}");
}
