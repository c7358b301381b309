//! A power cut or a kill at every step of a workload, and at steps of the recovery from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use haul_append_log::Lsn;
use haul_disk_sim::{Crash, Crashes, MemoryDisk, crash_everywhere};

use crate::payload::{RECORDS, ids, payload, run};
use crate::{open_on, put, small};

/// Numbers of records appended after a crash.
const AFTERWARDS: u64 = 1 << 32;

/// What the owner of the log was told.
enum Told {
    Acknowledged(u64, Lsn),
    /// All that was there when the log was opened again.
    Delivered(BTreeMap<u64, Lsn>),
}

/// What was appended, by LSN.
type Appended = BTreeMap<Lsn, u64>;

/// Opens, appends from several threads, closes, opens again, appends: with a rotation each time.
fn workload(disk: &MemoryDisk) -> Appended {
    let mut appended = Appended::new();
    for session in 0..2 {
        let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
        let told = |id, lsn| disk.note(Told::Acknowledged(id, lsn));
        let outcome = run(&log, session * RECORDS, &told);
        assert!(outcome.errors.is_empty(), "{:?}", outcome.errors);
        appended.extend(outcome.acknowledged.iter().map(|(id, lsn)| (*lsn, *id)));
        log.close().unwrap();
    }
    assert_eq!(appended.len() as u64, 2 * RECORDS);
    appended
}

/// What the owner of a log must find again.
#[derive(Default)]
struct Known {
    must: BTreeMap<u64, Lsn>,
    was_delivered: bool,
}

impl Known {
    fn before(crash: &Crash) -> Self {
        let mut known = Self::default();
        for told in crash.notes() {
            match told {
                Told::Acknowledged(id, lsn) => drop(known.must.insert(*id, *lsn)),
                Told::Delivered(all) => {
                    known.must.clone_from(all);
                    known.was_delivered = true;
                }
            }
        }
        known
    }

    fn check(&self, found: &BTreeMap<u64, Lsn>, appended: &Appended) {
        let is_there = |(id, lsn): (&u64, &Lsn)| found.get(id) == Some(lsn);
        assert!(self.must.iter().all(is_there), "an acknowledged record is lost");
        if self.was_delivered {
            // At most the one record that was under way.
            let more: Vec<_> = found.keys().filter(|id| !self.must.contains_key(id)).collect();
            let next = next_id(&self.must);
            assert!(more.is_empty() || more == [&next], "{more:?} came from nowhere");
        } else {
            let by_lsn: BTreeMap<Lsn, u64> = found.iter().map(|(id, lsn)| (*lsn, *id)).collect();
            let expected = appended.iter().take(by_lsn.len());
            assert!(by_lsn.iter().eq(expected), "not the first part of what was appended");
        }
    }
}

fn next_id(found: &BTreeMap<u64, Lsn>) -> u64 {
    found.last_key_value().map_or(AFTERWARDS, |(id, _)| AFTERWARDS.max(id + 1))
}

/// All acknowledged is there, and what was found stays, as does what is appended now.
fn recover(appended: &Appended, crash: &Crash) {
    let opened = open_on(Arc::new(crash.disk.clone()), small()).unwrap();
    let mut found = ids(&opened.records);
    Known::before(crash).check(&found, appended);
    crash.disk.note(Told::Delivered(found.clone()));
    for _ in 0..2 {
        let id = next_id(&found);
        let lsn = put(&opened.log, &payload(id, 3000)).lsn;
        crash.disk.note(Told::Acknowledged(id, lsn));
        found.insert(id, lsn);
    }
}

#[test]
fn a_crash_at_any_step_loses_nothing_acknowledged() {
    let states = crash_everywhere(&Crashes::default(), workload, recover);
    assert!(states > 1000, "{states}");
}
