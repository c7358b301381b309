//! From the needles of the volumes, and of their indexes where a volume is damaged, to what the
//! store holds.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use haul_append_log::{self as log, Lsn, Position, Replay, SegmentInfo};
use haul_disk::Disk;

use crate::error::{Error, Result};
use crate::format::{Head, NotANeedle, needles};
use crate::index::Index;
use crate::index::entry::{Change, Predecessor};
use crate::recovery::spill::Spill;
use crate::volume_index;
use crate::volume_index::format::{IndexedNeedle, VolumeIndex};
use crate::volume_index::pending::Record;
use crate::volume_index::ranges::Ranges;

/// What an index says of a volume that is not known by it alone.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    /// The ranges whose needles the index has.
    pub(crate) covered: Ranges,
    /// Where the volume ends for certain.
    pub(crate) end: Option<u32>,
    /// Needles in the index.
    pub(crate) needles: u64,
    /// How much of the file of the index can be kept.
    pub(crate) kept_bytes: u64,
}

impl Coverage {
    fn of(index: &VolumeIndex) -> Self {
        let VolumeIndex { count, covered, end, kept_bytes, .. } = index;
        let covered = covered.clone();
        Self { covered, end: *end, needles: *count, kept_bytes: *kept_bytes }
    }
}

/// Takes what the log delivers when it is opened, in the order of the volumes.
///
/// Where a volume does not deliver a needle that its index has, the needle is taken from the
/// index, in its turn: its place is damaged, so that reading it is an error, and what it ended
/// stays ended.
pub(crate) struct Replayer<'a> {
    volumes: &'a dyn Disk,
    /// All volumes that may exist, with their nonces where these are known.
    expected: BTreeMap<u32, Option<u64>>,
    pub(crate) index: Index,
    /// The index has all needles before this place: from a checkpoint.
    pub(super) applied: Lsn,
    /// The nonces of the volumes in the checkpoint.
    nonces: BTreeMap<u32, u64>,
    pub(super) spill: Spill,
    /// The error that makes the index useless.
    pub(super) failed: Option<Error>,
    /// Objects in damaged places before `applied`.
    pub(super) damaged_objects: Vec<(Position, Head)>,
    /// Those that the log could open, and of them those known by their indexes alone.
    pub(crate) opened: BTreeMap<u32, u64>,
    pub(crate) complete: BTreeSet<u32>,
    /// Volumes before this one are done.
    reached: u32,
    /// What the index of the volume being read has, and how much of that has been passed.
    waiting: BTreeMap<u32, (VolumeIndex, usize)>,
    pub(crate) coverage: BTreeMap<u32, Coverage>,
    /// Needles known from an index or from their own heads only.
    pub(super) affected: Vec<(Position, Head)>,
    /// Ranges of damaged records whose needles are all known, and of sound ones that hold none.
    pub(crate) salvaged: BTreeMap<u32, Ranges>,
    malformed: Vec<log::Damage>,
    /// Records of the last volume that its index has not got.
    pub(crate) last_records: (u32, Vec<Record>),
}

impl Replay for Replayer<'_> {
    /// A sealed volume is known by its index.
    fn is_known(&mut self, segment: SegmentInfo) -> bool {
        self.opened.insert(segment.number, segment.nonce);
        self.index.addresses.announce(segment.number, segment.bytes.into());
        if segment.number <= self.applied.segment()
            && self.nonces.get(&segment.number).is_some_and(|nonce| *nonce != segment.nonce)
        {
            let what = "the checkpoint is of other volumes".to_owned();
            self.failed.get_or_insert(Error::Invalid { what });
        }
        if self.is_covered(segment.number) {
            return true;
        }
        let index = self.read_index(segment.number, Some(segment.nonce));
        let is_complete = index.as_ref().is_some_and(|index| index.is_complete);
        match index {
            Some(_) if is_complete => drop(self.complete.insert(segment.number)),
            Some(index) => self.wait_with(segment.number, index),
            None => {}
        }
        is_complete
    }

    /// In the order of the volumes: a tombstone that came before what it deletes would be
    /// forgotten.
    fn apply_known(&mut self, segment: SegmentInfo) -> bool {
        self.advance_to(segment.number);
        if self.is_covered(segment.number) {
            return true;
        }
        let index = self.read_index(segment.number, Some(segment.nonce));
        let Some(index) = index.filter(|index| index.is_complete) else {
            self.complete.remove(&segment.number);
            return false;
        };
        index.needles.into_iter().for_each(|needle| self.apply(needle));
        true
    }

    fn durable_end(&mut self, segment: SegmentInfo) -> u32 {
        let nonce = Some(segment.nonce);
        let index = match self.waiting.get(&segment.number) {
            Some((index, _)) => Some(index.covered.end()),
            None => self.read_index(segment.number, nonce).map(|index| index.covered.end()),
        };
        let of_checkpoint = match segment.number == self.applied.segment() {
            true => self.applied.offset(),
            false => 0,
        };
        index.flatten().unwrap_or(0).max(of_checkpoint)
    }

    fn record(&mut self, at: Position, payload: &[u8]) {
        self.begin_volume(at.lsn.segment());
        self.apply_waiting(at.lsn.segment(), Some(at.lsn));
        let known = self.take_delivered(at.lsn);
        if !known.is_empty() || self.is_covered_record(at) {
            // The index of the volume also knows the predecessors.
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

    /// What a needle's own head says is kept, so that the object is not forgotten: reading it
    /// is an error.
    fn damaged(&mut self, at: Position, payload: &[u8]) {
        self.begin_volume(at.lsn.segment());
        self.apply_waiting(at.lsn.segment(), Some(at.lsn));
        let is_waiting = self.waiting.get(&at.lsn.segment()).is_some_and(|(index, passed)| {
            index.needles.get(*passed).is_some_and(|next| next.at.lsn == at.lsn)
        });
        if is_waiting {
            // Applied from the index when the next record comes.
            return;
        }
        let found: Vec<_> = needles(payload).collect();
        if found.iter().all(std::result::Result::is_ok) && !found.is_empty() {
            let (from, ranges) =
                (at.lsn.offset(), self.salvaged.entry(at.lsn.segment()).or_default());
            ranges.insert(from, from + log::footprint(at));
        }
        for (head, _) in found.into_iter().flatten() {
            self.affected.push((at, head.clone()));
            self.apply(IndexedNeedle { at, head, predecessor: Predecessor::Unknown });
        }
    }
}

impl<'a> Replayer<'a> {
    /// Creates a replayer that continues a checkpoint, or begins with an empty `index`.
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
            coverage: BTreeMap::new(),
            affected: Vec::new(),
            salvaged: BTreeMap::new(),
            malformed: Vec::new(),
            last_records: (0, Vec::new()),
        }
    }

    fn wait_with(&mut self, volume: u32, index: VolumeIndex) {
        self.coverage.insert(volume, Coverage::of(&index));
        self.waiting.insert(volume, (index, 0));
    }

    /// Ends all volumes before this one, whose records come now.
    fn begin_volume(&mut self, volume: u32) {
        if volume == self.reached {
            return;
        }
        self.advance_to(volume);
        // The log may find out late that a segment was begun.
        let nonce = self.expected.get(&volume).copied().flatten();
        if let Entry::Vacant(late) = self.opened.entry(volume) {
            late.insert(nonce.unwrap_or(0));
            if let Some(index) = self.read_index(volume, nonce) {
                self.wait_with(volume, index);
            }
        }
    }

    /// Ends all volumes before this one.
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

    /// Takes from the index of a volume what the volume did not deliver.
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

    /// Applies the needles of an index that lie before `until` and were not delivered.
    fn apply_waiting(&mut self, volume: u32, until: Option<Lsn>) {
        let Some((index, passed)) = self.waiting.get_mut(&volume) else { return };
        let is_before = |needle: &IndexedNeedle| until.is_none_or(|until| needle.at.lsn < until);
        let from = *passed;
        *passed += index.needles[from..].iter().take_while(|needle| is_before(needle)).count();
        let needles = index.needles[from..*passed].to_vec();
        for needle in needles {
            self.affected.push((needle.at, needle.head.clone()));
            self.apply(needle);
        }
    }

    /// Takes the needles that the index of the volume has of a record that was delivered.
    fn take_delivered(&mut self, lsn: Lsn) -> Vec<IndexedNeedle> {
        let Some((index, passed)) = self.waiting.get_mut(&lsn.segment()) else { return Vec::new() };
        let from = *passed;
        let delivered = index.needles[from..].iter().take_while(|needle| needle.at.lsn == lsn);
        *passed += delivered.count();
        index.needles[from..*passed].to_vec()
    }

    /// Returns `true` if both the checkpoint and the index of the volume have a record.
    fn is_covered_record(&self, at: Position) -> bool {
        let (from, to) = (at.lsn.offset(), at.lsn.offset() + log::footprint(at));
        let coverage = self.coverage.get(&at.lsn.segment());
        at.lsn < self.applied && coverage.is_some_and(|found| found.covered.contains(from, to))
    }

    /// Reads the index of a volume, without needles that the checkpoint has.
    fn read_index(&self, volume: u32, nonce: Option<u64>) -> Option<VolumeIndex> {
        volume_index::read_after(self.volumes, volume, nonce, self.covered_end(volume))
    }

    /// Keeps the heads of a record that the index of the last volume has not got.
    fn remember(&mut self, at: Position, changes: &[Change]) {
        let volume = at.lsn.segment();
        let last = self.opened.last_key_value().map_or(0, |(number, _)| *number);
        if volume < last {
            return;
        }
        if self.last_records.0 != volume {
            self.last_records = (volume, Vec::new());
        }
        let (from, to) = (at.lsn.offset(), at.lsn.offset() + log::footprint(at));
        let coverage = self.coverage.get(&volume);
        if !coverage.is_some_and(|coverage| coverage.covered.intersects(from, to)) {
            self.last_records.1.push(Record::new(at, changes));
        }
    }

    /// Ends the replay: applies what is left in the indexes of damaged and missing volumes.
    ///
    /// # Errors
    /// The index cannot be continued, and must be rebuilt.
    pub(crate) fn end(&mut self) -> Result<()> {
        self.advance_to(u32::MAX);
        self.index.end_replay();
        self.forget_removed_volumes();
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Forgets volumes of the checkpoint that compaction removed after it. All their needles were
    /// dead or moved, and the replay has shown that.
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

    /// Returns `true` if the index has all needles of a volume from the checkpoint.
    pub(crate) fn is_covered(&self, volume: u32) -> bool {
        volume < self.applied.segment()
    }

    /// The part of a volume whose needles the index has from the checkpoint.
    pub(crate) fn covered_end(&self, volume: u32) -> u32 {
        match volume.cmp(&self.applied.segment()) {
            std::cmp::Ordering::Less => u32::MAX,
            std::cmp::Ordering::Equal => self.applied.offset(),
            std::cmp::Ordering::Greater => 0,
        }
    }

    /// Takes the ranges of records that check out and hold something else than needles.
    pub(crate) fn take_malformed(&mut self) -> Vec<log::Damage> {
        std::mem::take(&mut self.malformed)
    }

    /// Deletions known from an index only that lie at or behind `from`.
    pub(crate) fn affected_ends(&self, from: Lsn) -> impl Iterator<Item = &Head> {
        let ends = self.affected.iter().filter(move |(at, _)| at.lsn >= from);
        ends.map(|(_, head)| head).filter(|head| head.ends_something())
    }

    fn malformed_at(&self, at: Position, why: NotANeedle) -> log::Damage {
        let what = match why {
            NotANeedle::Malformed(what) => what,
            NotANeedle::Needs(_) => "the needle is cut short",
        };
        let offset = u64::from(at.lsn.offset());
        let end = offset + u64::from(log::footprint(at));
        let file = self.path(at.lsn.segment());
        log::Damage { file, offset, end, what: what.to_owned() }
    }

    /// The volumes that must exist.
    pub(crate) fn expected_volumes(&self) -> impl Iterator<Item = u32> {
        self.expected.keys().copied()
    }

    /// `true` if a volume must exist.
    pub(crate) fn expects(&self, volume: u32) -> bool {
        self.expected.contains_key(&volume)
    }

    pub(crate) fn path(&self, volume: u32) -> PathBuf {
        self.volumes.root().join(log::segment_name(volume))
    }
}
