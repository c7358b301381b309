//! Simulates power cuts and kills at every step of a workload and at steps of the recovery, and
//! tests that no acknowledged record is lost.

use std::collections::BTreeMap;
use std::sync::Arc;

use haul_append_log::{Lsn, Options};
use haul_disk_sim::{Crash, Crashes, MemoryDisk, crash_everywhere};

use crate::payload::{RECORDS, ids, payload, run};
use crate::{open_on, put, small};

/// The smallest id of the records that the test appends after a crash.
const RECOVERY_RECORDS: u64 = 1 << 32;

/// An event observed by the caller of the log.
enum Event {
    Acknowledged(u64, Lsn),
    /// The records delivered when the log was opened again.
    Delivered(BTreeMap<u64, Lsn>),
}

/// The appended records, by LSN.
type Appended = BTreeMap<Lsn, u64>;

/// Runs two sessions. Each one opens the log, appends records from several threads across the end
/// of a segment, writes a watermark and closes the log.
fn workload(disk: &MemoryDisk) -> Appended {
    let mut appended = Appended::new();
    for session in 0..2 {
        let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
        let event = |id, lsn| disk.note(Event::Acknowledged(id, lsn));
        let outcome = run(&log, session * RECORDS, &event);
        assert!(outcome.errors.is_empty(), "{:?}", outcome.errors);
        appended.extend(outcome.acknowledged.iter().map(|(id, lsn)| (*lsn, *id)));
        log.write_watermark().unwrap();
        log.close().unwrap();
    }
    assert_eq!(appended.len() as u64, 2 * RECORDS);
    appended
}

/// The records that must survive a crash.
#[derive(Default)]
struct Expected {
    must: BTreeMap<u64, Lsn>,
    was_delivered: bool,
}

impl Expected {
    fn before(crash: &Crash) -> Self {
        let mut expected = Self::default();
        for event in crash.notes() {
            match event {
                Event::Acknowledged(id, lsn) => drop(expected.must.insert(*id, *lsn)),
                Event::Delivered(all) => {
                    expected.must.clone_from(all);
                    expected.was_delivered = true;
                }
            }
        }
        expected
    }

    fn check(&self, found: &BTreeMap<u64, Lsn>, appended: &Appended) {
        let is_found = |(id, lsn): (&u64, &Lsn)| found.get(id) == Some(lsn);
        assert!(self.must.iter().all(is_found), "an acknowledged record is lost");
        if self.was_delivered {
            // Besides these records, only the record that was being appended may exist.
            let more: Vec<_> = found.keys().filter(|id| !self.must.contains_key(id)).collect();
            let next = next_id(&self.must);
            assert!(more.is_empty() || more == [&next], "{more:?} were never appended");
        } else {
            let by_lsn: BTreeMap<Lsn, u64> = found.iter().map(|(id, lsn)| (*lsn, *id)).collect();
            let expected = appended.iter().take(by_lsn.len());
            assert!(by_lsn.iter().eq(expected), "not a prefix of the appended records");
        }
    }
}

fn next_id(found: &BTreeMap<u64, Lsn>) -> u64 {
    found.last_key_value().map_or(RECOVERY_RECORDS, |(id, _)| RECOVERY_RECORDS.max(id + 1))
}

/// Options of a log with batches so large that the blocks of later segments are only reserved.
fn large() -> Options {
    Options { segment_bytes: 4 << 20, buffer_bytes: 1 << 20, ..small() }
}

/// Fills two segments and a half with batches of 600 kB.
fn large_batches(disk: &MemoryDisk) -> Appended {
    let log = open_on(Arc::new(disk.clone()), large()).unwrap().log;
    let appended = (0..15).map(|id| {
        let lsn = put(&log, &payload(id, 600_000)).lsn;
        disk.note(Event::Acknowledged(id, lsn));
        (lsn, id)
    });
    let appended = appended.collect();
    assert!(log.segments().len() >= 3, "{:?}", log.segments());
    appended
}

/// Asserts that acknowledged and previously delivered records are present, and appends two more.
fn recover(options: &Options, appended: &Appended, crash: &Crash) {
    let opened = open_on(Arc::new(crash.disk.clone()), options.clone()).unwrap();
    let mut found = ids(&opened.records);
    Expected::before(crash).check(&found, appended);
    crash.disk.note(Event::Delivered(found.clone()));
    for _ in 0..2 {
        let id = next_id(&found);
        let lsn = put(&opened.log, &payload(id, 3000)).lsn;
        crash.disk.note(Event::Acknowledged(id, lsn));
        found.insert(id, lsn);
    }
}

#[test]
fn acknowledged_records_survive_crash_at_any_step() {
    let recover = |appended: &Appended, crash: &Crash| recover(&small(), appended, crash);
    let states = crash_everywhere(&Crashes::default(), workload, recover);
    assert!(states > 300, "{states}");
}

#[test]
fn acknowledged_records_in_reserved_blocks_survive_crash_at_any_step() {
    let recover = |appended: &Appended, crash: &Crash| recover(&large(), appended, crash);
    let states = crash_everywhere(&Crashes::default(), large_batches, recover);
    assert!(states > 300, "{states}");
}
