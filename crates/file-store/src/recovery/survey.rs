//! Surveys the damage found while a store is opened: the affected keys, and the hidden ranges.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use haul_append_log::{self as log, Log};
use haul_disk::Disk;

use crate::damage::report::Damage;
use crate::error::Result;
use crate::format::{Head, needles};
use crate::index::hidden::{Hidden, HiddenRange};
use crate::manifest;
use crate::manifest::format::AcceptedLoss;
use crate::names;
use crate::recovery::replay::Replayer;
use crate::volume_index;
use crate::volume_index::format::FIRST_RECORD;
use crate::volume_index::ranges::Ranges;

/// A store's damage.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// All damage, with names as far as known.
    pub(crate) damage: Vec<Damage>,
    /// The ranges that may hide unknown keys.
    pub(crate) hidden: Vec<HiddenRange>,
    pub(crate) hidden_damage: Vec<Damage>,
    /// Damaged ranges by volume.
    pub(crate) ranges: BTreeMap<u32, Ranges>,
    /// Damaged and missing volumes.
    pub(crate) volumes: BTreeSet<u32>,
    /// Volumes that should exist but cannot be opened.
    pub(crate) missing: BTreeSet<u32>,
}

impl Survey {
    /// Evaluates the damage that the log and the replay found.
    ///
    /// # Errors
    /// The index is damaged as well and must be rebuilt.
    pub(crate) fn new(
        replay: &mut Replayer<'_>,
        log: &Log,
        found: Vec<log::Damage>,
        accepted: &[AcceptedLoss],
    ) -> Result<Self> {
        let mut survey = Self::default();
        let malformed = replay.take_malformed();
        let mut damaged: Vec<log::Damage> = found.into_iter().chain(malformed).collect();
        let opened: BTreeSet<u32> = log.segments().iter().map(|segment| segment.number).collect();
        let expected = replay.expected_volumes().filter(|volume| !opened.contains(volume));
        survey.missing.extend(expected);
        let known: BTreeSet<u32> = damaged.iter().filter_map(volume_of).collect();
        for volume in survey.missing.difference(&known) {
            let file = replay.path(*volume);
            let what = "the volume is missing with all its content: restore its file".to_owned();
            damaged.push(log::Damage { file, offset: 0, end: u64::MAX, what });
        }
        let place = |damage: &log::Damage| Some((volume_of(damage)?, damage.offset, damage.end));
        let places: Vec<(u32, u64, u64)> = damaged.iter().filter_map(place).collect();
        replay.find_damaged_objects(&places)?;
        for damage in damaged {
            survey.add_damage(replay, log, &damage, accepted);
        }
        Ok(survey)
    }

    fn add_damage(
        &mut self,
        replay: &Replayer<'_>,
        log: &Log,
        damage: &log::Damage,
        accepted: &[AcceptedLoss],
    ) {
        let Some(volume) = volume_of(damage) else {
            self.damage.push(damage.clone().into());
            return;
        };
        self.volumes.insert(volume);
        let (from, to) = (offset(damage.offset).max(FIRST_RECORD), offset(damage.end));
        self.ranges.entry(volume).or_default().insert(from, to);
        let named = replay.name(volume, damage);
        let mut unknown = unknown_ranges(replay, log, volume, (from, to));
        let all_unknown = unknown.clone();
        for loss in accepted.iter().filter(|loss| loss.volume == volume) {
            unknown.remove(loss.from, loss.to);
        }
        let is_accepted = unknown != all_unknown;
        if damage.end == u64::MAX || named.is_empty() && unknown.is_empty() || is_accepted {
            let mut plain = Damage::from(damage.clone());
            if is_accepted {
                plain.what += "; the loss of the content was accepted";
            }
            self.damage.push(plain);
        }
        self.damage.extend(named);
        for (from, to) in unknown.iter() {
            let (file, what) = (damage.file.clone(), damage.what.clone());
            let text = format!("{what}; the objects in this place are unknown");
            let hidden = Damage::in_file(file.clone(), from.into(), text);
            self.damage.push(hidden.clone());
            self.hidden_damage.push(hidden);
            self.hidden.push(HiddenRange { volume, from, to, file, what });
        }
    }

    /// Adds damage to the manifest itself.
    pub(crate) fn add_manifest(
        &mut self,
        root: &Path,
        found: &manifest::LoadedManifest,
        was_closed: bool,
    ) {
        let path = |name: &str| root.join(name);
        let is_rebuilt = found.manifest.as_ref().is_none_or(|manifest| manifest.is_rebuilt);
        if is_rebuilt {
            let what = "the manifest was lost and rebuilt from the existing volumes: the loss of \
                        other volumes cannot be detected";
            self.damage.push(Damage::in_file(path(names::MANIFESTS[0]), 0, what));
        } else if was_closed {
            // After a crash, the copy that was being written may be torn.
            for name in &found.damaged {
                let what = "this copy of the manifest was damaged, and was rewritten";
                self.damage.push(Damage::in_file(path(name), 0, what));
            }
        }
    }
}

/// Returns the volume that contains the damage.
fn volume_of(damage: &log::Damage) -> Option<u32> {
    let name = damage.file.file_name().and_then(|name| name.to_str())?;
    names::parse_volume(name)
}

fn offset(offset: u64) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

/// Returns the part of a damaged range whose content is unknown.
fn unknown_ranges(replay: &Replayer<'_>, log: &Log, volume: u32, (from, to): (u32, u32)) -> Ranges {
    let mut unknown = Ranges::default();
    // A volume after the newest one was prepared but never used, unless it is listed.
    let is_begun = volume <= log.synced().segment() || replay.expects(volume);
    if is_begun {
        unknown.insert(from, to);
    }
    unknown.remove(0, replay.covered_end(volume));
    if let Some(coverage) = replay.coverage.get(&volume) {
        coverage.covered.iter().for_each(|(from, to)| unknown.remove(from, to));
        unknown.remove(coverage.end.unwrap_or(u32::MAX), u32::MAX);
    }
    for (from, to) in replay.salvaged.get(&volume).iter().flat_map(|ranges| ranges.iter()) {
        unknown.remove(from, to);
    }
    unknown
}

/// Creates the hidden ranges, and marks the keys as absent whose newest needle is a tombstone after
/// all of them.
///
/// # Errors
/// A volume that cannot be read.
pub(crate) fn mark_absent_keys(
    ranges: Vec<HiddenRange>,
    log: &Log,
    replay: &Replayer<'_>,
    volumes: &dyn Disk,
) -> Result<Hidden> {
    let mut hidden = Hidden::new(ranges, replay.index.newest);
    let Some(end) = hidden.end() else { return Ok(hidden) };
    let mut ended: Vec<(String, String)> = Vec::new();
    let mut take = |head: &Head| {
        if head.is_tombstone() && head.upload == 0 {
            ended.push((head.bucket.clone(), head.key.clone()));
        }
    };
    for segment in log.segments().iter().filter(|segment| segment.number >= end.segment()) {
        let index = volume_index::read(volumes, segment.number, Some(segment.nonce));
        if let Some(index) = index.filter(|index| index.is_complete) {
            let later = index.needles.iter().filter(|needle| needle.at.lsn >= end);
            later.for_each(|needle| take(&needle.head));
            continue;
        }
        log.scan(segment.number, &mut |at, record| {
            if at.lsn >= end {
                needles(record).flatten().for_each(|(head, _)| take(&head));
            }
        })?;
    }
    replay.salvaged_tombstones(end).for_each(take);
    for (bucket, key) in ended {
        hidden.mark_absent(&bucket, &key);
    }
    Ok(hidden)
}
