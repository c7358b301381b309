//! A power cut or a kill at every step of a workload, and at every step of the recovery from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use haul_append_log::Lsn;
use haul_disk::Disk;

use crate::memory::{Medium, MemoryDisk, Step, Survival};
use crate::payload::{RECORDS, ids, payload, run};
use crate::{Note, Opened, open_on, put, small};

/// Numbers of records appended after a crash.
const AFTERWARDS: u64 = 1 << 32;

/// Everything a workload did to its disk, and what it appended.
struct Workload {
    steps: Vec<Step>,
    appended: BTreeMap<Lsn, u64>,
}

/// Opens, appends, closes, opens again, appends: with a rotation each time.
fn workload() -> Workload {
    let disk = MemoryDisk::default();
    let mut appended = BTreeMap::new();
    for session in 0..2 {
        let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
        let outcome = run(&log, session * RECORDS, &|_, lsn| disk.note(lsn.0));
        assert!(outcome.errors.is_empty(), "{:?}", outcome.errors);
        appended.extend(outcome.acknowledged.iter().map(|(id, lsn)| (*lsn, *id)));
        log.close().unwrap();
    }
    assert_eq!(appended.len() as u64, 2 * RECORDS);
    Workload { steps: disk.steps(), appended }
}

impl Workload {
    /// What is delivered is the first part of what was appended, with all acknowledged.
    fn check(&self, opened: &Opened, acknowledged: &[u64]) {
        let found = ids(&opened.records);
        let delivered: BTreeMap<Lsn, u64> = found.into_iter().map(|(id, lsn)| (lsn, id)).collect();
        let expected = self.appended.iter().take(delivered.len());
        assert!(delivered.iter().eq(expected), "not the first part of what was appended");
        let last = delivered.last_key_value().map_or(Lsn(0), |(lsn, _)| *lsn);
        assert!(acknowledged.iter().all(|lsn| *lsn <= last.0), "an acknowledged record is lost");
    }

    /// Calls `each` with the medium and the acknowledged LSNs after each step.
    fn after_each_step(&self, mut each: impl FnMut(usize, &Medium, &[u64])) {
        let (mut medium, mut acknowledged) = (Medium::default(), Vec::new());
        for (number, step) in self.steps.iter().enumerate() {
            medium.take(step);
            if let Step::Note(lsn) = step {
                acknowledged.push(*lsn);
            }
            each(number, &medium, &acknowledged);
        }
    }
}

fn start(medium: &Medium) -> (MemoryDisk, Opened) {
    let disk = MemoryDisk::on(medium);
    let opened = open_on(Arc::new(disk.clone()) as Arc<dyn Disk>, small()).unwrap();
    (disk, opened)
}

/// What was delivered stays, and what is appended now survives the next power cut.
fn goes_on(disk: &MemoryDisk, opened: Opened, survival: Survival) {
    let Opened { log, records, .. } = opened;
    let mut expected = ids(&records);
    for id in [AFTERWARDS, AFTERWARDS + 1] {
        expected.insert(id, put(&log, &payload(id, 3000)).lsn);
    }
    let medium = disk.medium();
    drop(log);
    let (_, again) = start(&medium.cut(survival));
    assert_eq!(ids(&again.records), expected, "after the next power cut");
}

#[test]
fn a_power_cut_at_any_step_loses_nothing_acknowledged() {
    let workload = workload();
    let mut states = 0;
    workload.after_each_step(|number, medium, acknowledged| {
        let seed = number as u64;
        let survivals = [
            Survival::Nothing,
            Survival::Everything,
            Survival::Half { seed },
            Survival::Most { seed },
        ];
        for survival in survivals {
            let note = Note(format!("a cut after step {number}, {survival:?}"));
            let left = medium.cut(survival);
            let (disk, opened) = start(&left);
            workload.check(&opened, acknowledged);
            states += 1;
            if number.is_multiple_of(8) {
                states += recover_again(&workload, &left, &disk.steps(), acknowledged, seed);
            }
            goes_on(&disk, opened, survival);
            states += 1;
            drop(note);
        }
    });
    println!("{states} crash states of {} steps", workload.steps.len());
    assert!(states > 1000);
}

/// A power cut at every step of a recovery.
fn recover_again(
    workload: &Workload,
    left: &Medium,
    recovery: &[Step],
    acknowledged: &[u64],
    seed: u64,
) -> u32 {
    let (mut medium, mut states) = (left.clone(), 0);
    for (number, step) in recovery.iter().enumerate() {
        medium.take(step);
        let _note = Note(format!("a second cut after step {number} of the recovery"));
        let (_, opened) = start(&medium.cut(Survival::Half { seed: seed + number as u64 }));
        workload.check(&opened, acknowledged);
        states += 1;
    }
    states
}

#[test]
fn a_kill_at_any_step_and_a_power_cut_later_lose_nothing_delivered() {
    let workload = workload();
    let mut states = 0;
    workload.after_each_step(|number, medium, acknowledged| {
        for survival in [Survival::Nothing, Survival::Half { seed: number as u64 }] {
            let _note = Note(format!("a kill after step {number}, then {survival:?}"));
            let (disk, opened) = start(medium);
            workload.check(&opened, acknowledged);
            goes_on(&disk, opened, survival);
            states += 2;
        }
    });
    println!("{states} crash states of {} steps", workload.steps.len());
    assert!(states > 500);
}
