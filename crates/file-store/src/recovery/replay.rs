//! The replay: builds the index from the needles of the volumes and, for damaged volumes, from
//! their indexes.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::path::PathBuf;
use std::vec::IntoIter;

use haul_append_log::{self as log, Lsn, Position, Replay, SegmentInfo};
use haul_disk::Disk;

use crate::error::{Error, Result};
use crate::format::{Head, NeedleError, needles};
use crate::index::Index;
use crate::index::entry::{Change, Predecessor};
use crate::recovery::coverage::Coverage;
use crate::recovery::spill::Spill;
use crate::volume_index::format::{IndexedNeedle, VolumeIndex};
use crate::volume_index::pending::Record;
use crate::volume_index::ranges::Ranges;

/// Receives the records that the log delivers when it is opened, in the order of the volumes.
///
/// If a volume does not deliver a needle that its index has, the needle is taken from the index, in
/// log order: its position is damaged, so a read of it fails, but its deletions still apply.
pub(crate) struct Replayer<'a> {
    pub(super) volumes: &'a dyn Disk,
    /// All volumes that may exist, with their nonces if known.
    expected: BTreeMap<u32, Option<u64>>,
    pub(crate) index: Index,
    /// The index has all needles before this position, from a checkpoint.
    pub(super) applied: Lsn,
    /// The nonces of the checkpoint's volumes.
    nonces: BTreeMap<u32, u64>,
    pub(super) spill: Spill,
    /// The error that makes the index unusable.
    pub(super) failed: Option<Error>,
    /// Objects in damaged ranges before `applied`.
    pub(super) damaged_objects: Vec<(Position, Head)>,
    /// The volumes that the log opened, with their nonces.
    pub(crate) opened: BTreeMap<u32, u64>,
    /// The volumes that are known by their indexes alone.
    pub(crate) complete: BTreeSet<u32>,
    /// All volumes before this one are complete.
    reached: u32,
    /// Index needles that are not applied yet, by volume and in volume order.
    waiting: BTreeMap<u32, Peekable<IntoIter<IndexedNeedle>>>,
    /// The index that was read last and is not used yet.
    pub(super) cached: Option<VolumeIndex>,
    pub(crate) coverage: BTreeMap<u32, Coverage>,
    /// Needles that are known only from an index or from their own heads.
    pub(super) affected: Vec<(Position, Head)>,
    /// Ranges of damaged records whose needles are all known, and of intact records without
    /// needles.
    pub(crate) salvaged: BTreeMap<u32, Ranges>,
    malformed: Vec<log::Damage>,
    /// The last volume's records that its index does not have.
    pub(crate) last_records: (u32, Vec<Record>),
}

impl Replay for Replayer<'_> {
    /// A sealed volume is known by its index.
    fn is_known(&mut self, segment: SegmentInfo) -> bool {
        self.opened.insert(segment.number, segment.nonce);
        self.index.addresses.announce(segment.number, segment.bytes.into());
        if self
            .index
            .addresses
            .range(segment.number)
            .is_some_and(|range| range.bytes < segment.bytes.into())
        {
            let what = format!("the checkpoint has a shorter volume {}", segment.number);
            self.failed.get_or_insert(Error::Invalid { what });
        }
        if segment.number <= self.applied.segment()
            && self.nonces.get(&segment.number).is_some_and(|nonce| *nonce != segment.nonce)
        {
            let what = "the checkpoint belongs to other volumes".to_owned();
            self.failed.get_or_insert(Error::Invalid { what });
        }
        if self.is_covered(segment.number) {
            return true;
        }
        if self.has_complete_index(segment) {
            self.complete.insert(segment.number);
            return true;
        }
        if let Some(index) = self.read_index(segment.number, Some(segment.nonce)) {
            self.wait_with(segment.number, index);
        }
        false
    }

    /// Applies needles in volume order: a tombstone before the needle that it deletes would have no
    /// effect.
    fn apply_known(&mut self, segment: SegmentInfo) -> bool {
        self.advance_to(segment.number);
        if self.is_covered(segment.number) {
            return true;
        }
        let index = self.read_index(segment.number, Some(segment.nonce));
        match index {
            Some(index) if index.is_complete => {
                index.needles.into_iter().for_each(|needle| self.apply(needle));
                return true;
            }
            Some(index) => self.wait_with(segment.number, index),
            None => {}
        }
        self.complete.remove(&segment.number);
        false
    }

    fn durable_end(&mut self, segment: SegmentInfo) -> u32 {
        let from_index = match self.coverage.get(&segment.number) {
            Some(coverage) => coverage.covered.end(),
            None => {
                self.cached = self.read_index(segment.number, Some(segment.nonce));
                self.cached.as_ref().and_then(|index| index.covered.end())
            }
        };
        let from_checkpoint = match segment.number == self.applied.segment() {
            true => self.applied.offset(),
            false => 0,
        };
        from_index.unwrap_or(0).max(from_checkpoint)
    }

    fn known_end(&mut self, segment: SegmentInfo) -> u32 {
        self.covered_end(segment.number)
    }

    fn record(&mut self, at: Position, payload: &[u8]) {
        self.begin_volume(at.lsn.segment());
        self.apply_waiting(at.lsn.segment(), Some(at.lsn));
        let known = self.take_delivered(at.lsn);
        if !known.is_empty() {
            // The index of the volume also has the predecessors.
            known.into_iter().for_each(|needle| self.apply(needle));
            return;
        }
        let mut heads = Vec::new();
        for needle in needles(payload) {
            match needle {
                Ok((head, _)) => heads.push(head),
                Err(why) => self.malformed.push(self.malformed_at(at, why)),
            }
        }
        let changes: Vec<Change> =
            heads.into_iter().filter_map(|head| self.apply_head(at, head)).collect();
        self.remember(at, &changes);
    }

    /// Keeps the entry from the needle's own head, so that the object stays known, although reading
    /// it fails.
    fn damaged(&mut self, at: Position, payload: &[u8]) {
        self.begin_volume(at.lsn.segment());
        self.apply_waiting(at.lsn.segment(), Some(at.lsn));
        let waiting = self.waiting.get_mut(&at.lsn.segment());
        let next = waiting.and_then(|needles| needles.peek());
        if next.is_some_and(|next| next.at.lsn == at.lsn) {
            // The needle is applied from the index when the next record arrives.
            return;
        }
        let found: Vec<_> = needles(payload).collect();
        if found.iter().all(std::result::Result::is_ok) && !found.is_empty() {
            let (from, ranges) =
                (at.lsn.offset(), self.salvaged.entry(at.lsn.segment()).or_default());
            ranges.insert(from, from + log::stored_bytes(at));
        }
        for (head, _) in found.into_iter().flatten() {
            self.affected.push((at, head.clone()));
            self.apply(IndexedNeedle { at, head, predecessor: Predecessor::Unknown });
        }
    }
}

impl<'a> Replayer<'a> {
    /// Creates a replay that continues a checkpoint, or starts with an empty `index`.
    pub(crate) fn new(
        volumes: &'a dyn Disk,
        expected: BTreeMap<u32, Option<u64>>,
        mut index: Index,
        checkpoint: (Lsn, BTreeMap<u32, u64>),
        spill: Spill,
    ) -> Self {
        index.replaying = true;
        let (applied, nonces) = checkpoint;
        Self {
            volumes,
            expected,
            index,
            applied,
            nonces,
            spill,
            failed: None,
            damaged_objects: Vec::new(),
            opened: BTreeMap::new(),
            complete: BTreeSet::new(),
            reached: 0,
            waiting: BTreeMap::new(),
            cached: None,
            coverage: BTreeMap::new(),
            affected: Vec::new(),
            salvaged: BTreeMap::new(),
            malformed: Vec::new(),
            last_records: (0, Vec::new()),
        }
    }

    fn wait_with(&mut self, volume: u32, index: VolumeIndex) {
        self.coverage.insert(volume, Coverage::of(&index));
        self.waiting.insert(volume, index.needles.into_iter().peekable());
    }

    /// Completes all volumes before this one, whose records follow.
    fn begin_volume(&mut self, volume: u32) {
        if volume == self.reached {
            return;
        }
        self.advance_to(volume);
        // The log may detect late that a segment was started.
        let nonce = self.expected.get(&volume).copied().flatten();
        if let Entry::Vacant(late) = self.opened.entry(volume) {
            late.insert(nonce.unwrap_or(0));
            if let Some(index) = self.read_index(volume, nonce) {
                self.wait_with(volume, index);
            }
        }
    }

    /// Completes all volumes before this one.
    fn advance_to(&mut self, volume: u32) {
        if volume <= self.reached {
            return;
        }
        let passed = self.reached..volume;
        let volumes: BTreeSet<u32> = self
            .waiting
            .range(passed.clone())
            .map(|(number, _)| *number)
            .chain(self.expected.range(passed).map(|(number, _)| *number))
            .collect();
        for number in volumes {
            self.end_volume(number);
        }
        self.reached = volume;
    }

    /// Applies the needles in a volume's index that the volume did not deliver.
    fn end_volume(&mut self, volume: u32) {
        if !self.opened.contains_key(&volume) {
            let nonce = self.expected.get(&volume).copied().flatten();
            if let Some(index) = self.read_index(volume, nonce) {
                self.wait_with(volume, index);
            }
        }
        self.apply_waiting(volume, None);
        self.waiting.remove(&volume);
    }

    /// Applies an index's needles before `until` that were not delivered.
    fn apply_waiting(&mut self, volume: u32, until: Option<Lsn>) {
        let is_before = |needle: &IndexedNeedle| until.is_none_or(|until| needle.at.lsn < until);
        while let Some(needle) =
            self.waiting.get_mut(&volume).and_then(|needles| needles.next_if(is_before))
        {
            self.affected.push((needle.at, needle.head.clone()));
            self.apply(needle);
        }
    }

    /// Takes a delivered record's needles from the volume's index.
    fn take_delivered(&mut self, lsn: Lsn) -> Vec<IndexedNeedle> {
        let Some(needles) = self.waiting.get_mut(&lsn.segment()) else { return Vec::new() };
        std::iter::from_fn(|| needles.next_if(|needle| needle.at.lsn == lsn)).collect()
    }

    /// Keeps a record's heads, if the record is in the last volume and that volume's index does not
    /// have it.
    fn remember(&mut self, at: Position, changes: &[Change]) {
        let volume = at.lsn.segment();
        let last = self.opened.last_key_value().map_or(0, |(number, _)| *number);
        if volume < last {
            return;
        }
        if self.last_records.0 != volume {
            self.last_records = (volume, Vec::new());
        }
        let (from, to) = (at.lsn.offset(), at.lsn.offset() + log::stored_bytes(at));
        let coverage = self.coverage.get(&volume);
        if !coverage.is_some_and(|coverage| coverage.covered.intersects(from, to)) {
            self.last_records.1.push(Record::new(at, changes));
        }
    }

    /// Completes the replay: applies the remaining needles in the indexes of damaged and missing
    /// volumes.
    ///
    /// # Errors
    /// The index is inconsistent and must be rebuilt.
    pub(crate) fn end(&mut self) -> Result<()> {
        self.advance_to(u32::MAX);
        self.index.end_replay();
        self.forget_removed_volumes();
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Removes the checkpoint's volumes that compaction removed after it. The replay has shown that
    /// all their needles are dead or moved.
    fn forget_removed_volumes(&mut self) {
        let exists =
            |volume: u32| self.opened.contains_key(&volume) || self.expected.contains_key(&volume);
        let volumes: Vec<(u32, u64)> =
            self.index.volumes.iter().map(|(number, found)| (number, found.live_needles)).collect();
        for (volume, live_needles) in volumes.into_iter().filter(|(volume, _)| !exists(*volume)) {
            if live_needles > 0 {
                let what =
                    format!("the checkpoint has needles in volume {volume}, which was removed");
                self.failed.get_or_insert(Error::Invalid { what });
            }
            self.index.remove_volume(volume);
        }
    }

    /// Returns and clears the ranges of intact records that contain something other than needles.
    pub(crate) fn take_malformed(&mut self) -> Vec<log::Damage> {
        std::mem::take(&mut self.malformed)
    }

    /// Returns the tombstones at or after `from` whose records are damaged or missing: they are known
    /// from a volume index or from an intact head.
    pub(crate) fn salvaged_tombstones(&self, from: Lsn) -> impl Iterator<Item = &Head> {
        let ends = self.affected.iter().filter(move |(at, _)| at.lsn >= from);
        ends.map(|(_, head)| head).filter(|head| head.is_tombstone())
    }

    fn malformed_at(&self, at: Position, why: NeedleError) -> log::Damage {
        let what = match why {
            NeedleError::Malformed(what) => what,
            NeedleError::Needs(_) => "the needle is truncated",
        };
        let offset = u64::from(at.lsn.offset());
        let end = offset + u64::from(log::stored_bytes(at));
        let file = self.path(at.lsn.segment());
        log::Damage { file, offset, end, what: what.to_owned() }
    }

    /// Returns the volumes that must exist.
    pub(crate) fn expected_volumes(&self) -> impl Iterator<Item = u32> {
        self.expected.keys().copied()
    }

    /// Returns `true` if a volume must exist.
    pub(crate) fn expects(&self, volume: u32) -> bool {
        self.expected.contains_key(&volume)
    }

    pub(crate) fn path(&self, volume: u32) -> PathBuf {
        self.volumes.root().join(log::segment_name(volume))
    }
}
