//! Records the operations on a log, and computes from them which records the log must, may and must
//! not contain after a crash at any step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use haul_append_log::{Error, Log, Lsn, Options, Position, SpacePriority, Ticket};
use haul_disk_sim::{Crash, MemoryDisk};

use crate::open_on;
use crate::payload::{ids, payload};

/// An operation or result observed by the caller, noted on the simulated disk.
#[derive(Debug)]
enum Event {
    /// An append begins.
    Attempted(u64),
    /// The record is durable.
    Acknowledged(u64, Lsn),
    /// The removal of these records begins; each group is removed atomically.
    Removing(Vec<Vec<u64>>),
    /// The records are durably removed.
    Removed(Vec<u64>),
}

/// The records that a log must, may and must not contain.
#[derive(Debug, Clone, Default)]
pub(crate) struct Expected {
    pub(crate) acknowledged: BTreeMap<u64, Lsn>,
    attempted: BTreeSet<u64>,
    removing: Vec<BTreeMap<u64, Lsn>>,
    removed: BTreeSet<u64>,
    /// The greatest LSN ever acknowledged.
    last: Lsn,
    next_id: u64,
}

impl Expected {
    /// Returns the expected records at the time of a crash.
    fn before(crash: &Crash) -> Self {
        let mut expected = Self::default();
        crash.notes().for_each(|event| expected.apply(event));
        expected
    }

    fn apply(&mut self, event: &Event) {
        match event {
            Event::Attempted(id) => {
                self.attempted.insert(*id);
                self.next_id = id + 1;
            }
            Event::Acknowledged(id, lsn) => {
                self.attempted.remove(id);
                self.removing.iter_mut().for_each(|group| group.retain(|other, _| other != id));
                self.acknowledged.insert(*id, *lsn);
                self.last = self.last.max(*lsn);
            }
            Event::Removing(groups) => {
                let mut take = |id: &u64| (*id, self.acknowledged.remove(id).unwrap());
                let groups = groups.iter().map(|ids| ids.iter().map(&mut take).collect());
                self.removing.extend(groups);
            }
            Event::Removed(ids) => {
                self.removed.extend(ids);
                self.attempted.retain(|id| !self.removed.contains(id));
                self.removing.retain(|group| !group.keys().all(|id| self.removed.contains(id)));
            }
        }
    }

    /// Asserts that the delivered records are as expected.
    pub(crate) fn check(&self, records: &[(Position, Vec<u8>)]) {
        let mut found = ids(records);
        let in_order: Vec<Lsn> = found.values().copied().collect();
        assert!(in_order.is_sorted_by(|a, b| a < b), "records are not in the order of appending");
        for (id, lsn) in &self.acknowledged {
            assert_eq!(
                found.remove(id),
                Some(*lsn),
                "acknowledged record {id} is lost or at another LSN"
            );
        }
        for group in &self.removing {
            let left = group.iter().filter(|(id, lsn)| found.remove(id) == Some(**lsn)).count();
            assert!(left == 0 || left == group.len(), "{left} are left of {group:?}");
        }
        for (id, lsn) in &found {
            assert!(!self.removed.contains(id), "record {id} came back at {lsn}");
            assert!(*lsn > self.last, "record {id} has a reused LSN: {lsn}");
        }
        let first_attempted = self.attempted.iter().take(found.len());
        assert!(
            found.keys().eq(first_attempted),
            "{found:?} is not a prefix of the attempted records"
        );
    }

    /// Asserts that the LSN of a new record was never acknowledged before.
    fn check_new(&self, lsn: Lsn) {
        assert!(lsn > self.last, "LSN {lsn} is reused, the last was {}", self.last);
    }
}

/// A log on a disk in memory, and its expected records.
pub(crate) struct History {
    pub(crate) disk: MemoryDisk,
    options: Options,
    pub(crate) now: Expected,
    log: Option<Log>,
}

impl History {
    pub(crate) fn begin(disk: &MemoryDisk, options: Options) -> Self {
        Self::start(disk, options, Expected::default())
    }

    /// Opens the log again after a crash and checks its records.
    pub(crate) fn recover(crash: &Crash, options: Options) -> Self {
        Self::start(&crash.disk, options, Expected::before(crash))
    }

    fn start(disk: &MemoryDisk, options: Options, now: Expected) -> Self {
        let mut history = Self { disk: disk.clone(), options, now, log: None };
        history.open();
        history
    }

    pub(crate) fn log(&self) -> &Log {
        self.log.as_ref().unwrap()
    }

    fn note(&mut self, event: Event) {
        self.now.apply(&event);
        self.disk.note(event);
    }

    /// Closes the log, which fails if it is latched, and opens it again.
    pub(crate) fn reopen(&mut self) {
        if let Some(log) = self.log.take() {
            let was_latched = log.is_latched();
            assert_eq!(log.close().is_err(), was_latched);
        }
        self.open();
    }

    /// Closes the log, which may fail after injected faults.
    pub(crate) fn close_ignoring_errors(&mut self) {
        drop(self.log.take());
    }

    pub(crate) fn open(&mut self) {
        let opened = open_on(Arc::new(self.disk.clone()), self.options.clone()).unwrap();
        self.now.check(&opened.records);
        let found = ids(&opened.records);
        for (id, lsn) in &found {
            if self.now.acknowledged.get(id) != Some(lsn) {
                self.note(Event::Acknowledged(*id, *lsn));
            }
        }
        let left = self.now.removing.iter().flat_map(BTreeMap::keys);
        let missing = self.now.attempted.iter().chain(left).copied().collect();
        self.note(Event::Removed(missing));
        self.log = Some(opened.log);
    }

    /// Appends records of these lengths without waiting in between, then waits for all of them.
    pub(crate) fn put(
        &mut self,
        lengths: &[usize],
        room: SpacePriority,
    ) -> haul_append_log::Result<()> {
        let mut tickets: Vec<(u64, Ticket)> = Vec::new();
        let mut refused = Ok(());
        for bytes in lengths {
            let id = self.now.next_id;
            self.note(Event::Attempted(id));
            match self.log().append(&[&payload(id, *bytes)], room) {
                Ok(ticket) => tickets.push((id, ticket)),
                Err(error) => {
                    self.note(Event::Removed(vec![id]));
                    refused = Err(error);
                    break;
                }
            }
        }
        for (id, ticket) in tickets {
            let at = ticket.wait()?;
            self.now.check_new(at.lsn);
            self.note(Event::Acknowledged(id, at.lsn));
        }
        refused
    }

    /// Truncates all but the first `left` records.
    pub(crate) fn truncate_back(&mut self, left: usize) -> haul_append_log::Result<()> {
        let group: Vec<u64> = self.now.acknowledged.keys().copied().skip(left).collect();
        let Some(first) = group.first() else { return Ok(()) };
        let lsn = self.now.acknowledged[first];
        self.note(Event::Removing(vec![group.clone()]));
        let outcome = self.log().truncate_back(lsn);
        if self.log().is_latched() {
            return outcome;
        }
        // After a failed creation of a segment the log is unchanged; after a failed removal the
        // truncation is complete.
        let readable = self.readable();
        if outcome.is_err() && readable.contains_key(first) {
            for id in group {
                self.note(Event::Acknowledged(id, readable[&id]));
            }
        } else {
            assert!(group.iter().all(|id| !readable.contains_key(id)), "a truncated record");
            self.note(Event::Removed(group));
        }
        outcome
    }

    /// Returns the records delivered by a reader.
    pub(crate) fn readable(&self) -> BTreeMap<u64, Lsn> {
        let mut reader = self.log().reader(Lsn::default());
        let mut records = Vec::new();
        loop {
            match reader.read_next() {
                Ok(Some((at, payload))) => records.push((at, payload.to_vec())),
                Ok(None) => break,
                // The injected fault made this read fail, so the loop retries it.
                Err(Error::Disk(_)) => {}
                Err(other) => panic!("{other}"),
            }
        }
        ids(&records)
    }

    /// Removes all but the last `left` segments.
    pub(crate) fn truncate_front(&mut self, left: usize) -> haul_append_log::Result<()> {
        if self.log().is_latched() {
            // The truncation would succeed, but it is unknown which unacknowledged records these
            // segments contain, and therefore which records it removes.
            return Ok(());
        }
        let numbers: Vec<u32> = self.log().segments().iter().map(|s| s.number).collect();
        let Some(first_left) = numbers.iter().rev().nth(left - 1) else { return Ok(()) };
        let of = |number: u32| {
            let ids = self.now.acknowledged.iter().filter(move |(_, lsn)| lsn.segment() == number);
            ids.map(|(id, _)| *id).collect()
        };
        let groups: Vec<Vec<u64>> =
            numbers.iter().filter(|n| *n < first_left).map(|n| of(*n)).collect();
        self.note(Event::Removing(groups.clone()));
        self.log().truncate_front(Lsn::new(*first_left, 0))?;
        self.note(Event::Removed(groups.concat()));
        Ok(())
    }

    pub(crate) fn close(mut self) {
        self.reopen();
        self.log.take().unwrap().close().unwrap();
    }
}
