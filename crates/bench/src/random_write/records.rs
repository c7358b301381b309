//! Generates records at random offsets, and an index entry for each. Performs no I/O.

use std::ops::RangeInclusive;

use haul_disk::PAGE_BYTES;
use haul_sorted_write::plan::Entry;
use haul_testing::Random;

use crate::named::named;

/// The range of the lengths of a record in bytes.
pub(super) const RECORD_BYTES: RangeInclusive<u64> = 100..=4096;

named! {
    /// The lengths and offsets of the records of a measurement.
    pub enum Shape {
        /// Records of 100 to 4,096 B at any offset: most cover a part of one or two pages.
        Records = "records",
        /// Whole pages of 4 KiB, at multiples of 4 KiB.
        Pages = "pages",
    }
}

impl Shape {
    /// Returns the range of the lengths of a record in bytes; `record_bytes` is the length of
    /// [`Shape::Records`], if all have the same.
    pub(super) fn bytes(self, record_bytes: Option<u64>) -> RangeInclusive<u64> {
        match self {
            Self::Records => record_bytes.map_or(RECORD_BYTES, |bytes| bytes..=bytes),
            Self::Pages => PAGE_BYTES as u64..=PAGE_BYTES as u64,
        }
    }

    /// Returns the number of which each offset is a multiple.
    fn unit_bytes(self) -> u64 {
        match self {
            Self::Records => 1,
            Self::Pages => PAGE_BYTES as u64,
        }
    }
}

/// The length in bytes of an entry of the index.
pub(super) const ENTRY_BYTES: usize = 64;

/// A record to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) offset: u64,
    pub(super) bytes: usize,
    /// The offset of the record's entry in the index.
    pub(super) entry_at: u64,
    /// The number whose bytes, repeated, are the content; it differs for each record of each run.
    pub(super) filling: u64,
}

impl Record {
    pub(super) fn end(&self) -> u64 {
        self.offset + self.bytes as u64
    }

    /// Returns the record as an entry of a write plan, with the number `number`.
    pub(super) fn as_entry(&self, number: u32) -> Entry {
        let bytes = u32::try_from(self.bytes).unwrap_or(u32::MAX);
        Entry { offset: self.offset, number, bytes }
    }

    /// Fills the beginning of `buffer` with the content of the record, and returns it.
    pub(super) fn fill<'a>(&self, buffer: &'a mut [u8]) -> &'a [u8] {
        let bytes = &mut buffer[..self.bytes];
        for word in bytes.chunks_mut(8) {
            word.copy_from_slice(&self.filling.to_le_bytes()[..word.len()]);
        }
        bytes
    }

    pub(super) fn entry(&self) -> [u8; ENTRY_BYTES] {
        let mut entry = [0; ENTRY_BYTES];
        for word in entry.chunks_exact_mut(8) {
            word.copy_from_slice(&self.filling.to_le_bytes());
        }
        entry
    }
}

/// The seed of the lengths and offsets.
const SEED: u64 = 1;

/// Returns the records of a run; all runs have the same offsets but different bytes.
pub(super) fn records(
    shape: Shape,
    record_bytes: Option<u64>,
    count: usize,
    file_bytes: u64,
    index_bytes: u64,
    run: u64,
) -> Vec<Record> {
    let mut random = Random(SEED);
    let (shortest, longest) = shape.bytes(record_bytes).into_inner();
    let entries = (index_bytes / ENTRY_BYTES as u64).max(1);
    let record = |number: usize| {
        let bytes = shortest + random.below(longest - shortest + 1);
        let places = file_bytes.saturating_sub(bytes) / shape.unit_bytes() + 1;
        Record {
            offset: random.below(places) * shape.unit_bytes(),
            bytes: usize::try_from(bytes).unwrap_or(0),
            entry_at: random.below(entries) * ENTRY_BYTES as u64,
            filling: Random(run << 32 | number as u64).number(),
        }
    };
    (0..count).map(record).collect()
}

/// Picks about `some` of the records, at regular distances, and returns those that no later record
/// overwrites.
pub(super) fn not_overwritten(records: &[Record], some: usize) -> Vec<Record> {
    let step = (records.len() / some.max(1)).max(1);
    let picked = records.iter().enumerate().step_by(step);
    let is_last = |(number, record): &(usize, &Record)| {
        let over = |later: &Record| later.offset < record.end() && record.offset < later.end();
        !records[number + 1..].iter().any(over)
    };
    picked.filter(is_last).map(|(_, record)| *record).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_write_different_bytes_at_the_same_offsets() {
        let of = |run| records(Shape::Records, None, 2000, 1 << 30, 1 << 20, run);
        let (one, two) = (of(1), of(2));
        let places = |run: &[Record]| run.iter().map(|r| (r.offset, r.bytes)).collect::<Vec<_>>();
        assert!(places(&one) == places(&two) && of(1) == one);
        assert!(one.iter().zip(&two).all(|(one, two)| one.filling != two.filling));
        assert!(one.iter().all(|record| record.end() <= 1 << 30 && record.entry_at < 1 << 20));
        let lengths = one.iter().map(|record| record.bytes as u64);
        assert!(lengths.clone().all(|bytes| RECORD_BYTES.contains(&bytes)));
        let mean = lengths.sum::<u64>() / 2000;
        assert!((1900..2300).contains(&mean), "{mean}");
        let pages = records(Shape::Pages, None, 2000, 1 << 20, 1 << 20, 1);
        assert!(pages.iter().all(|page| page.bytes == 4096 && page.offset % 4096 == 0));
        assert_eq!(pages.iter().map(|page| page.offset).max(), Some((1 << 20) - 4096));
        let equal = records(Shape::Records, Some(100), 2000, 1 << 20, 1 << 20, 1);
        assert!(equal.iter().all(|record| record.bytes == 100));
        let mut buffer = [0; 4096];
        assert_eq!(one[0].fill(&mut buffer).len(), one[0].bytes);
        assert!(one[0].fill(&mut buffer).starts_with(&one[0].entry()));
    }

    #[test]
    fn overwritten_records_are_not_verified() {
        let at = |offset| Record { offset, bytes: 100, entry_at: 0, filling: offset };
        let all = [at(0), at(200), at(250), at(400)];
        assert_eq!(not_overwritten(&all, 4), [at(0), at(250), at(400)]);
        assert_eq!(not_overwritten(&all, 1), [at(0)]);
        assert!(not_overwritten(&[], 5).is_empty());
    }
}
