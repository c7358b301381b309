//! Heads of durable needles that are not yet written to their volume's index. Pure.

use std::collections::BTreeMap;

use haul_append_log::Position;

use crate::format::Head;
use crate::index::entry::{Change, Predecessor};
use crate::volume_index::format::{FIRST_RECORD, WATERMARK_BYTES, push_entry};
use crate::volume_index::ranges::Ranges;

/// The heads from a volume's range that will form one block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) needles: u32,
    pub(crate) entries: Vec<u8>,
}

/// A record's heads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) offset: u32,
    /// The offset of the next record.
    pub(crate) end: u32,
    needles: u32,
    entries: Vec<u8>,
}

impl Record {
    /// Creates the record of needles that were applied to the index.
    pub(crate) fn new<'a>(at: Position, changes: impl IntoIterator<Item = &'a Change>) -> Self {
        let predecessor = |change: &Change| Predecessor::from(change.replaces.clone());
        let changes = changes.into_iter();
        Self::encode(at, changes.map(|change| (&change.head, predecessor(change))))
    }

    fn encode<'a>(at: Position, needles: impl Iterator<Item = (&'a Head, Predecessor)>) -> Self {
        let mut entries = Vec::with_capacity(128 * needles.size_hint().0);
        let mut count = 0;
        for (head, predecessor) in needles {
            push_entry(&mut entries, at, head, &predecessor);
            count += 1;
        }
        let (offset, needles) = (at.lsn.offset(), count);
        Self { offset, end: offset + haul_append_log::stored_bytes(at), needles, entries }
    }
}

impl Run {
    fn take(&mut self, record: &Record) {
        debug_assert!(record.offset >= self.to, "records of a run are in order");
        debug_assert!(record.offset < record.end);
        self.needles += record.needles;
        self.entries.extend_from_slice(&record.entries);
        self.to = record.end;
    }
}

/// The heads that a volume's index lacks.
///
/// Records arrive in any order, because threads wait for their commits concurrently. A block
/// contains all heads of its range, so a record waits until all earlier ones have arrived.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// Complete runs of records that existed before the store was opened.
    earlier: Vec<Run>,
    run: Run,
    /// Records that wait for an earlier record.
    ahead: BTreeMap<u32, Record>,
    /// The number of needles in all blocks, including written ones.
    pub(crate) counted: u32,
    /// `true` if a range will be in no block: the volume was damaged there, or a write failed.
    pub(crate) has_gap: bool,
}

impl Pending {
    /// Creates a new volume's state.
    pub(crate) fn new_volume() -> Self {
        let run = Run { from: FIRST_RECORD, to: FIRST_RECORD, ..Run::default() };
        Self { run, ..Self::default() }
    }

    /// Resumes a volume that ends at `end`. Its index already has `covered`, with `counted`
    /// needles. The content of `damaged` is unknown; `records` are the other records.
    pub(crate) fn resumed(
        end: u32,
        covered: &Ranges,
        counted: u32,
        damaged: &Ranges,
        records: &[Record],
    ) -> Self {
        debug_assert!(end >= FIRST_RECORD);
        let mut missing = Ranges::default();
        missing.insert(FIRST_RECORD, end);
        for (from, to) in covered.iter() {
            missing.remove(from, to);
        }
        let all_missing = missing.clone();
        for (from, to) in damaged.iter() {
            missing.remove(from, to);
        }
        let mut pending = Self { counted, has_gap: missing != all_missing, ..Self::default() };
        let mut records = records.iter().peekable();
        for (from, to) in missing.iter() {
            let mut run = Run { from, to: from, ..Run::default() };
            while let Some(record) = records.next_if(|record| record.offset < to) {
                if record.offset >= from {
                    pending.counted += record.needles;
                    run.take(record);
                }
            }
            // Only the mark of a closed log follows the last record.
            run.to = to;
            pending.earlier.push(run);
        }
        pending.run = match pending.earlier.pop_if(|last| last.to == end) {
            Some(last) => last,
            None => Run { from: end, to: end, ..Run::default() },
        };
        pending
    }

    /// Adds a durable record's heads.
    pub(crate) fn push(&mut self, record: Record) {
        self.ahead.insert(record.offset, record);
        loop {
            // A record without a needle, a watermark of the log, may lie in between. Records with
            // needles are longer.
            let watermark_end = self.run.to + WATERMARK_BYTES;
            let next = self.ahead.first_entry().filter(|next| *next.key() <= watermark_end);
            let Some(record) = next.map(|next| next.remove()) else { return };
            debug_assert!(record.offset >= self.run.from || record.end <= self.run.to);
            if record.offset >= self.run.to {
                self.counted += record.needles;
                self.run.take(&record);
            }
        }
    }

    /// Returns the number of bytes of entries that can be written now.
    pub(crate) fn bytes(&self) -> usize {
        self.run.entries.len()
    }

    /// Returns and removes the runs that can be written now.
    pub(crate) fn take(&mut self) -> Vec<Run> {
        let mut runs = std::mem::take(&mut self.earlier);
        if self.run.from < self.run.to {
            let next = Run { from: self.run.to, to: self.run.to, ..Run::default() };
            runs.push(std::mem::replace(&mut self.run, next));
        }
        runs
    }

    /// Returns the end of the known records, if none before it is missing.
    pub(crate) fn end(&self) -> Option<u32> {
        (!self.has_gap && self.ahead.is_empty()).then_some(self.run.to)
    }

    /// Returns `true` if no record waits for an earlier one.
    pub(crate) fn ahead_is_empty(&self) -> bool {
        self.ahead.is_empty()
    }

    /// Returns the end of the contiguous known records.
    pub(crate) fn known_to(&self) -> u32 {
        self.run.to
    }
}

#[cfg(test)]
mod tests {
    use haul_append_log::Lsn;

    use super::*;
    use crate::clock::Version;
    use crate::format::Kind;
    use crate::object::Etag;

    /// Returns a record of 128 bytes.
    fn record(offset: u32) -> Record {
        let etag = Etag { md5: [0; 16], parts: 0 };
        let (bucket, key, files) = ("b".to_owned(), offset.to_string(), Vec::new());
        let (kind, version) = (Kind::Tombstone, Version(1));
        let blocks = Box::default();
        let head = Head {
            kind,
            version,
            bucket,
            key,
            bytes: 0,
            etag,
            part: 0,
            upload: 0,
            is_versioned: false,
            files,
            blocks,
        };
        Record::new(Position { lsn: Lsn::new(1, offset), payload_bytes: 96 }, &[head.into()])
    }

    fn ranges(all: &[(u32, u32)]) -> Ranges {
        let mut ranges = Ranges::default();
        all.iter().for_each(|(from, to)| ranges.insert(*from, *to));
        ranges
    }

    fn spans(runs: &[Run]) -> Vec<(u32, u32, u32)> {
        runs.iter().map(|run| (run.from, run.to, run.needles)).collect()
    }

    #[test]
    fn record_waits_until_earlier_ones_have_arrived() {
        let mut pending = Pending::new_volume();
        pending.push(record(4096 + 128));
        assert_eq!((spans(&pending.take()), pending.end()), (vec![], None));
        pending.push(record(4096));
        assert_eq!(spans(&pending.take()), [(4096, 4352, 2)]);
        pending.push(record(4352));
        assert_eq!(spans(&pending.take()), [(4352, 4480, 1)]);
        assert_eq!((pending.counted, pending.end()), (3, Some(4480)));
    }

    #[test]
    fn watermark_between_records_leaves_no_gap() {
        let mut pending = Pending::new_volume();
        let after_watermark = 4096 + 128 + 32;
        pending.push(record(after_watermark));
        assert!(pending.take().is_empty());
        pending.push(record(4096));
        pending.push(record(after_watermark + 128));
        let end = after_watermark + 256;
        assert_eq!((spans(&pending.take()), pending.end()), (vec![(4096, end, 3)], Some(end)));
        pending.push(record(end + 40));
        assert_eq!(pending.end(), None, "a record is missing");
    }

    #[test]
    fn resumed_volume_gets_each_missing_head_once() {
        let records: Vec<Record> = [4096, 4224, 4352, 4480].map(record).to_vec();
        for (covered, damaged, expected, has_gap) in [
            (&[][..], &[][..], vec![(4096, 4640, 4)], false),
            (&[(4096, 4352)], &[], vec![(4352, 4640, 2)], false),
            (&[(4224, 4352)], &[], vec![(4096, 4224, 1), (4352, 4640, 2)], false),
            (&[(4096, 4640)], &[], vec![], false),
            (&[], &[(4224, 4352)], vec![(4096, 4224, 1), (4352, 4640, 2)], true),
            (&[(4224, 4352)], &[(4224, 4352)], vec![(4096, 4224, 1), (4352, 4640, 2)], false),
            (&[], &[(4480, 4640)], vec![(4096, 4480, 3)], true),
        ] {
            let (covered, damaged) = (ranges(covered), ranges(damaged));
            let found: Vec<Record> = records
                .iter()
                .filter(|record| !damaged.intersects(record.offset, record.end))
                .cloned()
                .collect();
            let mut pending = Pending::resumed(4640, &covered, 0, &damaged, &found);
            assert_eq!(pending.has_gap, has_gap, "{covered:?} {damaged:?}");
            assert_eq!(spans(&pending.take()), expected, "{covered:?} {damaged:?}");
            pending.push(record(4640));
            assert_eq!(spans(&pending.take()), [(4640, 4768, 1)]);
        }
    }
}
