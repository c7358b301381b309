//! What a log was asked to do, and what it may hold after a crash at any moment of that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use haul_append_log::{Error, Log, Lsn, Options, Position, Room, Ticket};
use haul_disk_sim::{Crash, MemoryDisk};

use crate::open_on;
use crate::payload::{ids, payload};

/// What the owner of a log did or was told, noted on its disk.
#[derive(Debug)]
enum Event {
    /// It is about to append a record.
    Attempted(u64),
    /// The record is durable.
    Acknowledged(u64, Lsn),
    /// It is about to take these away; each group goes as a whole.
    Leaving(Vec<Vec<u64>>),
    /// They are gone for good.
    Gone(Vec<u64>),
}

/// What the owner knows at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    pub(crate) acknowledged: BTreeMap<u64, Lsn>,
    attempted: BTreeSet<u64>,
    leaving: Vec<BTreeMap<u64, Lsn>>,
    gone: BTreeSet<u64>,
    /// The greatest LSN ever acknowledged.
    last: Lsn,
    next_id: u64,
}

impl Known {
    /// What the owner knew when the machine stopped.
    fn before(crash: &Crash) -> Self {
        let mut known = Self::default();
        crash.notes().for_each(|event| known.take(event));
        known
    }

    fn take(&mut self, event: &Event) {
        match event {
            Event::Attempted(id) => {
                self.attempted.insert(*id);
                self.next_id = id + 1;
            }
            Event::Acknowledged(id, lsn) => {
                self.attempted.remove(id);
                self.leaving.iter_mut().for_each(|group| group.retain(|other, _| other != id));
                self.acknowledged.insert(*id, *lsn);
                self.last = self.last.max(*lsn);
            }
            Event::Leaving(groups) => {
                let mut take = |id: &u64| (*id, self.acknowledged.remove(id).unwrap());
                let groups = groups.iter().map(|ids| ids.iter().map(&mut take).collect());
                self.leaving.extend(groups);
            }
            Event::Gone(ids) => {
                self.gone.extend(ids);
                self.attempted.retain(|id| !self.gone.contains(id));
                self.leaving.retain(|group| !group.keys().all(|id| self.gone.contains(id)));
            }
        }
    }

    /// What a log delivered is what it must hold now, and nothing it must not.
    pub(crate) fn check(&self, records: &[(Position, Vec<u8>)]) {
        let mut found = ids(records);
        let in_order: Vec<Lsn> = found.values().copied().collect();
        assert!(in_order.is_sorted_by(|a, b| a < b), "records are in the order of appending");
        for (id, lsn) in &self.acknowledged {
            assert_eq!(
                found.remove(id),
                Some(*lsn),
                "acknowledged record {id} is lost or elsewhere"
            );
        }
        for group in &self.leaving {
            let there = group.iter().filter(|(id, lsn)| found.remove(id) == Some(**lsn)).count();
            assert!(there == 0 || there == group.len(), "{there} are left of {group:?}");
        }
        for (id, lsn) in &found {
            assert!(!self.gone.contains(id), "record {id} came back at {lsn}");
            assert!(*lsn > self.last, "record {id} has an LSN given before: {lsn}");
        }
        let first_attempted = self.attempted.iter().take(found.len());
        assert!(
            found.keys().eq(first_attempted),
            "{found:?} is not the front of what was appended"
        );
    }

    /// A record that is appended now gets an LSN that no acknowledged one ever had.
    fn check_new(&self, lsn: Lsn) {
        assert!(lsn > self.last, "{lsn} was given before, up to {}", self.last);
    }
}

/// A log on a disk in memory, and what its owner knows.
pub(crate) struct History {
    pub(crate) disk: MemoryDisk,
    options: Options,
    pub(crate) now: Known,
    log: Option<Log>,
}

impl History {
    pub(crate) fn begin(disk: &MemoryDisk, options: Options) -> Self {
        Self::go_on(disk, options, Known::default())
    }

    /// Opens the log again after a crash: what it holds is what it may.
    pub(crate) fn recover(crash: &Crash, options: Options) -> Self {
        Self::go_on(&crash.disk, options, Known::before(crash))
    }

    fn go_on(disk: &MemoryDisk, options: Options, now: Known) -> Self {
        let mut history = Self { disk: disk.clone(), options, now, log: None };
        history.open();
        history
    }

    pub(crate) fn log(&self) -> &Log {
        self.log.as_ref().unwrap()
    }

    fn note(&mut self, event: Event) {
        self.now.take(&event);
        self.disk.note(event);
    }

    /// Closes the log, if it still can be, and opens it again.
    pub(crate) fn reopen(&mut self) {
        if let Some(log) = self.log.take() {
            let was_latched = log.is_latched();
            assert_eq!(log.close().is_err(), was_latched);
        }
        self.open();
    }

    /// Closes the log, which may meet what went wrong before.
    pub(crate) fn close_whatever(&mut self) {
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
        let left = self.now.leaving.iter().flat_map(BTreeMap::keys);
        let not_there = self.now.attempted.iter().chain(left).copied().collect();
        self.note(Event::Gone(not_there));
        self.log = Some(opened.log);
    }

    /// Appends records of these lengths together, and waits for all.
    pub(crate) fn put(&mut self, lengths: &[usize], room: Room) -> haul_append_log::Result<()> {
        let mut tickets: Vec<(u64, Ticket)> = Vec::new();
        let mut refused = Ok(());
        for bytes in lengths {
            let id = self.now.next_id;
            self.note(Event::Attempted(id));
            match self.log().append(&[&payload(id, *bytes)], room) {
                Ok(ticket) => tickets.push((id, ticket)),
                Err(error) => {
                    self.note(Event::Gone(vec![id]));
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

    /// Takes back all but the first `left` of the records there are.
    pub(crate) fn truncate_back(&mut self, left: usize) -> haul_append_log::Result<()> {
        let group: Vec<u64> = self.now.acknowledged.keys().copied().skip(left).collect();
        let Some(first) = group.first() else { return Ok(()) };
        let lsn = self.now.acknowledged[first];
        self.note(Event::Leaving(vec![group.clone()]));
        let outcome = self.log().truncate_back(lsn);
        if self.log().is_latched() {
            return outcome;
        }
        // Where a segment could not be made the log is as it was; where one could not be removed
        // the truncation stands. Nothing in between.
        let there = self.readable();
        if outcome.is_err() && there.contains_key(first) {
            for id in group {
                self.note(Event::Acknowledged(id, there[&id]));
            }
        } else {
            assert!(group.iter().all(|id| !there.contains_key(id)), "taken back and readable");
            self.note(Event::Gone(group));
        }
        outcome
    }

    /// What a reader of the log delivers.
    pub(crate) fn readable(&self) -> BTreeMap<u64, Lsn> {
        let mut reader = self.log().reader(Lsn::default());
        let mut records = Vec::new();
        loop {
            match reader.read_next() {
                Ok(Some((at, payload))) => records.push((at, payload.to_vec())),
                Ok(None) => break,
                // The fault met the reader, who tries again.
                Err(Error::Disk(_)) => {}
                Err(other) => panic!("{other}"),
            }
        }
        ids(&records)
    }

    /// Removes all but the last `left` segments.
    pub(crate) fn truncate_front(&mut self, left: usize) -> haul_append_log::Result<()> {
        if self.log().is_latched() {
            // It could, but what it takes may be in doubt already.
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
        self.note(Event::Leaving(groups.clone()));
        self.log().truncate_front(Lsn::new(*first_left, 0))?;
        self.note(Event::Gone(groups.concat()));
        Ok(())
    }

    pub(crate) fn close(mut self) {
        self.reopen();
        self.log.take().unwrap().close().unwrap();
    }
}
