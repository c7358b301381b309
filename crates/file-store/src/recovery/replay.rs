//! From the needles of the volumes, and of their indexes where a volume is damaged, to what the
//! store holds.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use haul_append_log::{self as log, Lsn, Position, Replay, SegmentInfo};
use haul_disk::Disk;

use crate::format::{Head, NotANeedle, needles};
use crate::index::Index;
use crate::recovery::damage::Damage;
use crate::volume_index;
use crate::volume_index::format::VolumeIndex;
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
    pub(crate) needles: usize,
    /// How much of the file of the index can be kept.
    pub(crate) kept_bytes: u64,
}

impl Coverage {
    fn of(index: &VolumeIndex) -> Self {
        let VolumeIndex { needles, covered, end, kept_bytes, .. } = index;
        let (covered, needles) = (covered.clone(), needles.len());
        Self { covered, end: *end, needles, kept_bytes: *kept_bytes }
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
    /// Those that the log could open, and of them those known by their indexes alone.
    pub(crate) opened: BTreeMap<u32, u64>,
    pub(crate) complete: BTreeSet<u32>,
    /// Volumes before this one are done.
    reached: u32,
    /// What the index of the volume being read has, and how much of that has been passed.
    waiting: BTreeMap<u32, (VolumeIndex, usize)>,
    pub(crate) coverage: BTreeMap<u32, Coverage>,
    /// Needles known from an index or from their own heads only.
    affected: Vec<(Position, Head)>,
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
        let index = volume_index::read(self.volumes, segment.number, Some(segment.nonce));
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
        let index = volume_index::read(self.volumes, segment.number, Some(segment.nonce));
        let Some(index) = index.filter(|index| index.is_complete) else {
            self.complete.remove(&segment.number);
            return false;
        };
        for (at, head) in index.needles {
            drop(self.index.apply(head, at));
        }
        true
    }

    fn durable_end(&mut self, segment: SegmentInfo) -> u32 {
        let nonce = Some(segment.nonce);
        let index = match self.waiting.get(&segment.number) {
            Some((index, _)) => Some(index.covered.end()),
            None => volume_index::read(self.volumes, segment.number, nonce)
                .map(|index| index.covered.end()),
        };
        index.flatten().unwrap_or(0)
    }

    fn record(&mut self, at: Position, payload: &[u8]) {
        self.begin_volume(at.lsn.segment());
        self.apply_waiting(at.lsn.segment(), Some(at.lsn));
        self.pass_delivered(at.lsn);
        let mut heads = Vec::new();
        for needle in needles(payload) {
            match needle {
                Ok((head, _)) => heads.push(head),
                Err(why) => self.malformed.push(self.malformed_at(at, why)),
            }
        }
        self.remember(at, &heads);
        for head in heads {
            drop(self.index.apply(head, at));
        }
    }

    /// What a needle's own head says is kept, so that the object is not forgotten: reading it
    /// is an error.
    fn damaged(&mut self, at: Position, payload: &[u8]) {
        self.begin_volume(at.lsn.segment());
        self.apply_waiting(at.lsn.segment(), Some(at.lsn));
        let is_waiting = self.waiting.get(&at.lsn.segment()).is_some_and(|(index, passed)| {
            index.needles.get(*passed).is_some_and(|(next, _)| next.lsn == at.lsn)
        });
        if is_waiting {
            // Applied from the index when the next record comes.
            return;
        }
        let found: Vec<_> = needles(payload).collect();
        if found.iter().all(Result::is_ok) && !found.is_empty() {
            let (from, ranges) =
                (at.lsn.offset(), self.salvaged.entry(at.lsn.segment()).or_default());
            ranges.insert(from, from + log::footprint(at));
        }
        for (head, _) in found.into_iter().flatten() {
            self.affected.push((at, head.clone()));
            drop(self.index.apply(head, at));
        }
    }
}

impl<'a> Replayer<'a> {
    pub(crate) fn new(volumes: &'a dyn Disk, expected: BTreeMap<u32, Option<u64>>) -> Self {
        let mut index = Index::default();
        index.replaying = true;
        Self {
            volumes,
            expected,
            index,
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
            if let Some(index) = volume_index::read(self.volumes, volume, nonce) {
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
            if let Some(index) = volume_index::read(self.volumes, volume, nonce) {
                self.wait_with(volume, index);
            }
        }
        self.apply_waiting(volume, None);
        self.waiting.remove(&volume);
    }

    /// Applies the needles of an index that lie before `until` and were not delivered.
    fn apply_waiting(&mut self, volume: u32, until: Option<Lsn>) {
        let Some((index, passed)) = self.waiting.get_mut(&volume) else { return };
        let is_before = |at: &Position| until.is_none_or(|until| at.lsn < until);
        while let Some((at, head)) = index.needles.get(*passed).filter(|(at, _)| is_before(at)) {
            *passed += 1;
            self.affected.push((*at, head.clone()));
            drop(self.index.apply(head.clone(), *at));
        }
    }

    /// Passes over the needles of an index whose record was delivered.
    fn pass_delivered(&mut self, lsn: Lsn) {
        let Some((index, passed)) = self.waiting.get_mut(&lsn.segment()) else { return };
        while index.needles.get(*passed).is_some_and(|(at, _)| at.lsn == lsn) {
            *passed += 1;
        }
    }

    /// Keeps the heads of a record that the index of the last volume has not got.
    fn remember(&mut self, at: Position, heads: &[Head]) {
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
            self.last_records.1.push(Record::new(at, heads));
        }
    }

    /// Ends the replay: applies what is left in the indexes of damaged and missing volumes.
    pub(crate) fn end(&mut self) {
        self.advance_to(u32::MAX);
        self.index.end_replay();
    }

    /// Takes the ranges of records that check out and hold something else than needles.
    pub(crate) fn take_malformed(&mut self) -> Vec<log::Damage> {
        std::mem::take(&mut self.malformed)
    }

    /// Names the objects, buckets, uploads and deletions that a damaged range of a volume held,
    /// as far as they still matter.
    pub(crate) fn name(&self, volume: u32, damage: &log::Damage) -> Vec<Damage> {
        let is_in = |(at, head): &&(Position, Head)| {
            at.lsn.segment() == volume
                && (damage.offset..damage.end).contains(&at.lsn.offset().into())
                && self.index.matters(head, *at)
        };
        let named = |(at, head): &(Position, Head)| Damage {
            bucket: Some(head.bucket.clone()),
            key: (!head.key.is_empty()).then(|| head.key.clone()),
            file: damage.file.clone(),
            offset: at.lsn.offset().into(),
            what: match head.ends_something() {
                true => format!("{}; a deletion is recorded here, and stays known", damage.what),
                false => damage.what.clone(),
            },
        };
        self.affected.iter().filter(is_in).map(named).collect()
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
