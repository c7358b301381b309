//! The power is cut after every step of a workload.

use std::collections::BTreeMap;

use haul_test_disk::{Medium, Step, Survival, TestDisk};

use crate::{all, line, numbers, open_on, small};

#[test]
fn what_was_synced_survives_a_power_cut_at_any_step() {
    let disk = TestDisk::default();
    let log = open_on(&disk, small());
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
        disk.note(next);
    }
    log.close().unwrap();
    disk.note(next);
    let (mut medium, mut synced, mut cuts) = (Medium::default(), 0, 0);
    for step in disk.steps() {
        medium.take(&step);
        if let Step::Note(lines) = step {
            synced = lines;
        }
        for survival in
            [Survival::Nothing, Survival::Half { seed: cuts }, Survival::Most { seed: cuts }]
        {
            check(&medium.cut(survival), synced, next);
            cuts += 1;
        }
    }
    assert!(cuts > 300, "{cuts}");
    println!("{cuts} power cuts");
}

/// Everything synced is there, and the next run goes on behind it.
fn check(medium: &Medium, synced: u64, end: u64) {
    let disk = TestDisk::on(medium);
    let log = open_on(&disk, small());
    log.append(b"99999999 goes on\n").unwrap();
    log.close().unwrap();
    let mut found = BTreeMap::new();
    for number in numbers(&all(&disk)) {
        *found.entry(number).or_insert(0) += 1;
    }
    assert_eq!(found.remove(&99_999_999), Some(1), "what comes next is not glued to anything");
    assert!((0..synced).all(|number| found.get(&number) == Some(&1)), "{synced} were synced");
    assert!(found.keys().all(|number| *number < end));
}
