//! Computes which records a log must contain after a power cut, from the output of the processes
//! that wrote it.

use std::collections::{BTreeMap, BTreeSet};

use haul_append_log::{Lsn, Position};

use crate::payload::ids;

/// The maximum number of records that a thread appends before it waits for them.
pub(crate) const AT_ONCE: u64 = 4;

/// Returns the id of the record with number `count` of a thread in a round.
pub(crate) fn id(round: u64, thread: u64, count: u64) -> u64 {
    round << 40 | thread << 32 | count
}

/// The acknowledged records, and the operations with an unknown outcome.
#[derive(Debug, Default)]
pub(crate) struct Promises {
    /// The records that were acknowledged, or delivered when the log was opened.
    records: BTreeMap<u64, Lsn>,
    /// The number of acknowledged records by round and thread.
    acknowledged: BTreeMap<u64, u64>,
    /// The removal of the segments before this number has begun, so each of them may exist or not.
    removing: u32,
    /// The segments before this number are removed.
    removed: u32,
    /// Groups of records whose truncation has begun. Each group exists completely, or not at all.
    truncating: Vec<BTreeMap<u64, Lsn>>,
    /// The records that were reported as truncated or found to be truncated.
    truncated: BTreeSet<u64>,
    /// The number of removals of segments, and of truncations.
    pub(crate) removals: u64,
    pub(crate) truncations: u64,
}

impl Promises {
    /// Parses a line of a writer. Returns `true` if it acknowledges a record.
    pub(crate) fn parse_line(&mut self, line: &str) -> bool {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["acknowledged", id, lsn, "."] => {
                let id: u64 = id.parse().unwrap();
                self.records.insert(id, Lsn(lsn.parse().unwrap()));
                let count = self.acknowledged.entry(id >> 32).or_default();
                assert_eq!(*count, id & 0xffff_ffff, "an acknowledgement is missing");
                *count += 1;
                return true;
            }
            ["removing", segment, "."] => self.removing = segment.parse().unwrap(),
            ["removed", segment, "."] => {
                self.removed = segment.parse().unwrap();
                self.removals += 1;
            }
            ["truncating", lsn, "."] => {
                let from = Lsn(lsn.parse().unwrap());
                self.truncating.push(self.records.extract_if(.., |_, lsn| *lsn >= from).collect());
            }
            ["truncated", "."] => {
                self.truncated.extend(self.truncating.pop().unwrap().into_keys());
                self.truncations += 1;
            }
            _ => {}
        }
        false
    }

    /// Checks the records that an opened log has delivered. From now on the log must always deliver
    /// these records.
    pub(crate) fn check(&mut self, records: &[(Position, Vec<u8>)]) {
        let found = ids(records);
        self.records.retain(|_, lsn| lsn.segment() >= self.removing);
        for (id, lsn) in &self.records {
            assert_eq!(found.get(id), Some(lsn), "acknowledged record {id:#x} is lost");
        }
        for (id, lsn) in &found {
            assert!(lsn.segment() >= self.removed, "removed record {id:#x} at {lsn} reappeared");
            assert!(!self.truncated.contains(id), "truncated record {id:#x} reappeared");
        }
        for mut group in std::mem::take(&mut self.truncating) {
            group.retain(|_, lsn| lsn.segment() >= self.removing);
            let missing = group.keys().filter(|id| !found.contains_key(id)).count();
            let total = group.len();
            assert!(
                missing == 0 || missing == total,
                "{missing} of {total} records were truncated"
            );
            if missing > 0 {
                self.truncated.extend(group.into_keys());
            }
        }
        self.check_order(&found);
        self.records = found;
        self.removing = self.removed;
    }

    /// Asserts that the records of each thread are in order and without a gap, and that they are at
    /// most [`AT_ONCE`] more than its acknowledged records.
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
