//! What a log owes after a power cut, gathered from the lines of the processes that wrote it.

use std::collections::{BTreeMap, BTreeSet};

use haul_append_log::{Lsn, Position};

use crate::payload::ids;

/// How many records a thread appends before it waits for them.
pub(crate) const AT_ONCE: u64 = 4;

/// The record number `count` of a thread in a round.
pub(crate) fn id(round: u64, thread: u64, count: u64) -> u64 {
    round << 40 | thread << 32 | count
}

/// The promises made so far, and what may come of what was not promised.
#[derive(Debug, Default)]
pub(crate) struct Promised {
    /// Acknowledged, or delivered when the log was opened.
    there: BTreeMap<u64, Lsn>,
    /// Of each round and thread: how many records it got acknowledged.
    acknowledged: BTreeMap<u64, u64>,
    /// Segments before this one were about to be removed: they may be there or not.
    removing: u32,
    /// Segments before this one are gone.
    removed: u32,
    /// What somebody began to take back is all there, or all gone.
    taking: Vec<BTreeMap<u64, Lsn>>,
    /// What was taken back, or was found to be.
    taken: BTreeSet<u64>,
    /// How often segments were removed and records taken back.
    pub(crate) removals: u64,
    pub(crate) takings: u64,
}

impl Promised {
    /// Takes a line that a writer said. Is it the acknowledgement of a record?
    pub(crate) fn hears(&mut self, line: &str) -> bool {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["acknowledged", id, lsn, "."] => {
                let id: u64 = id.parse().unwrap();
                self.there.insert(id, Lsn(lsn.parse().unwrap()));
                let count = self.acknowledged.entry(id >> 32).or_default();
                assert_eq!(*count, id & 0xffff_ffff, "a thread's records one after the other");
                *count += 1;
                return true;
            }
            ["removing", segment, "."] => self.removing = segment.parse().unwrap(),
            ["removed", segment, "."] => {
                self.removed = segment.parse().unwrap();
                self.removals += 1;
            }
            ["taking", lsn, "."] => {
                let from = Lsn(lsn.parse().unwrap());
                self.taking.push(self.there.extract_if(.., |_, lsn| *lsn >= from).collect());
            }
            ["taken", "."] => {
                self.taken.extend(self.taking.pop().unwrap().into_keys());
                self.takings += 1;
            }
            _ => {}
        }
        false
    }

    /// Compares with what a log delivers when it is opened; from now on that is what it owes.
    pub(crate) fn check(&mut self, records: &[(Position, Vec<u8>)]) {
        let found = ids(records);
        self.there.retain(|_, lsn| lsn.segment() >= self.removing);
        for (id, lsn) in &self.there {
            assert_eq!(found.get(id), Some(lsn), "record {id:#x} was promised");
        }
        for (id, lsn) in &found {
            assert!(lsn.segment() >= self.removed, "record {id:#x} at {lsn} is back");
            assert!(!self.taken.contains(id), "record {id:#x} was taken back, and is back");
        }
        for mut group in std::mem::take(&mut self.taking) {
            group.retain(|_, lsn| lsn.segment() >= self.removing);
            let is_gone = group.keys().filter(|id| !found.contains_key(id)).count();
            let of = group.len();
            assert!(is_gone == 0 || is_gone == of, "{is_gone} of {of} records were taken back");
            if is_gone > 0 {
                self.taken.extend(group.into_keys());
            }
        }
        self.check_order(&found);
        self.there = found;
        self.removing = self.removed;
    }

    /// Each thread's records are in its order, without a gap, and hardly more than it was promised.
    fn check_order(&self, found: &BTreeMap<u64, Lsn>) {
        let mut before: Option<(u64, Lsn)> = None;
        for (id, lsn) in found {
            let acknowledged = self.acknowledged.get(&(id >> 32)).copied().unwrap_or(0);
            let count = id & 0xffff_ffff;
            assert!(count < acknowledged + AT_ONCE, "record {id:#x} was never appended");
            if let Some((id_before, lsn_before)) = before
                && id_before >> 32 == id >> 32
            {
                assert!(lsn_before < *lsn, "record {id:#x} is before the one before it");
                assert_eq!(id_before + 1, *id, "a record is missing");
            }
            before = Some((*id, *lsn));
        }
    }
}
