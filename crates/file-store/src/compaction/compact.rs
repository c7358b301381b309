//! Compaction moves the live needles of a volume with dead bytes to the end of the log, and removes
//! the volume. `plan.rs` decides which volume is compacted, and when.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use haul_append_log::{Lsn, Position};
use haul_sync::now;

use crate::checkpoint::write::checkpoint;
use crate::compaction::mover::{Mover, Pace};
use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::inner::Inner;
use crate::maintenance::plan::{Candidate, choose, unused_bytes};
use crate::maintenance::volume_states::VolumeStates;
use crate::names;

/// The minimum dead share, in thousandths, of a volume that a requested compaction includes.
const REQUESTED_DEAD_SHARE: u64 = 100;

/// The minimum number of dead bytes at which a requested compaction ends the volume being written.
const END_DEAD_BYTES_MIN: u64 = 1 << 20;

/// The dead share, in thousandths, that a volume needs if it is only in a remote copy. Its live
/// needles must be fetched, which costs more than it saves for some months.
const REMOTE_DEAD_SHARE: u64 = 900;

/// The result of a compaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompactionReport {
    /// Volumes removed.
    pub volumes_removed: u64,
    /// Bytes of the removed files.
    pub bytes_freed: u64,
    /// Live bytes of these volumes, which were written again.
    pub bytes_moved: u64,
    /// Dead bytes that remain: in volumes with too few of them to compact, and in those that cannot
    /// be ended.
    pub bytes_left: u64,
    /// The part of these in a volume that is being written and has enough dead bytes: it was not
    /// ended, because the disk has no space for the next one.
    pub bytes_not_ended: u64,
}

impl CompactionReport {
    /// Returns the reports of two stores of a pool together.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            volumes_removed: self.volumes_removed + other.volumes_removed,
            bytes_freed: self.bytes_freed + other.bytes_freed,
            bytes_moved: self.bytes_moved + other.bytes_moved,
            bytes_left: self.bytes_left + other.bytes_left,
            bytes_not_ended: self.bytes_not_ended + other.bytes_not_ended,
        }
    }
}

/// The volumes from which the next one to compact is chosen.
#[derive(Debug, Clone, Copy)]
enum VolumeFilter<'a> {
    /// All volumes except those that an earlier compaction could not empty.
    All,
    /// Like `All`, but without volumes that still lose live bytes.
    Cold,
    /// The volumes with these numbers.
    Listed(&'a BTreeSet<u32>),
}

/// Compacts every volume with enough dead bytes, each at most once. If space is short, any number
/// of dead bytes is enough. Calls `report` after each volume.
pub(crate) fn compact_all(
    inner: &Inner,
    stop: &AtomicBool,
    report: &mut dyn FnMut(&CompactionReport),
) -> Result<CompactionReport> {
    let mut done = CompactionReport::default();
    if inner.keyspace.index_files.applied() > Lsn::default() {
        // Tombstones that the checkpoint contains are no longer needed. If there is no space for a
        // new checkpoint, they are moved.
        drop(checkpoint(inner));
    }
    end_volume(inner)?;
    let mut volume_states = inner.maintenance.volume_states.lock();
    volume_states.stuck.clear();
    let mut left: BTreeSet<u32> =
        inner.sealed_volumes().iter().map(|volume| volume.number).collect();
    drop(volume_states);
    loop {
        // Another compaction may run between two volumes.
        let mut volume_states = inner.maintenance.volume_states.lock();
        let line = match inner.measure_space()? {
            thresholds if inner.maintenance.admission.free_bytes() < thresholds.slow => 0,
            thresholds => thresholds
                .dead_share_min(inner.maintenance.admission.free_bytes())
                .min(REQUESTED_DEAD_SHARE),
        };
        let chosen = choose_volume(inner, line, &mut volume_states, VolumeFilter::Listed(&left))?;
        let Some((volume, tombstones_needed_from)) = chosen else {
            done.bytes_left = inner.keyspace.index.read().volumes.dead_bytes();
            done.bytes_not_ended = current_to_end(inner).unwrap_or_default();
            return Ok(done);
        };
        left.remove(&volume.number);
        compact_volume(
            inner,
            &volume,
            tombstones_needed_from,
            Pace::Requested,
            &mut volume_states,
            stop,
            &mut done,
        )?;
        report(&done);
        if stop.load(Ordering::Relaxed) {
            return Ok(done);
        }
    }
}

/// Ends the volume being written, so that it can be compacted, if enough of it is dead and there is
/// space for the next one.
fn end_volume(inner: &Inner) -> Result<()> {
    if current_to_end(inner).is_none() {
        return Ok(());
    }
    match inner.volumes.log.end_segment().map_err(Error::from) {
        Ok(_) | Err(Error::Full { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Returns the dead bytes of the volume being written, if it has enough of them to be ended.
fn current_to_end(inner: &Inner) -> Option<u64> {
    let current = inner.volumes.log.segments().pop()?.number;
    let found = inner.keyspace.index.read().volumes.get(current);
    let used_bytes = found.dead_bytes + found.live_bytes + found.tombstone_bytes;
    let is_worthwhile = found.dead_bytes >= END_DEAD_BYTES_MIN
        && found.dead_bytes * 1000 >= REQUESTED_DEAD_SHARE * used_bytes;
    is_worthwhile.then_some(found.dead_bytes)
}

/// Compacts the next volume with enough dead bytes for the current free space; `false` if there is
/// none.
pub(crate) fn compact_next(inner: &Inner, stop: &AtomicBool) -> Result<bool> {
    let mut volume_states = inner.maintenance.volume_states.lock();
    let thresholds = inner.measure_space()?;
    let free_bytes = inner.maintenance.admission.free_bytes();
    let filter =
        if free_bytes >= thresholds.relaxed { VolumeFilter::Cold } else { VolumeFilter::All };
    let chosen =
        choose_volume(inner, thresholds.dead_share_min(free_bytes), &mut volume_states, filter)?;
    let Some((volume, tombstones_needed_from)) = chosen else { return Ok(false) };
    inner.maintenance.admission.note_dead_bytes();
    let mut done = CompactionReport::default();
    let mut compact = |volume_states: &mut VolumeStates| {
        let pace = Pace::Background;
        compact_volume(inner, &volume, tombstones_needed_from, pace, volume_states, stop, &mut done)
    };
    match compact(&mut volume_states) {
        Err(Error::Full { .. }) if inner.release_indexes(&mut volume_states)? > 0 => {
            compact(&mut volume_states)?
        }
        outcome => outcome?,
    }
    Ok(!stop.load(Ordering::Relaxed))
}

/// Chooses the volume to compact. Also returns the position from [`tombstones_needed_from`].
fn choose_volume(
    inner: &Inner,
    dead_share_min: u64,
    volume_states: &mut VolumeStates,
    filter: VolumeFilter<'_>,
) -> Result<Option<(Candidate, Lsn)>> {
    if volume_states.removal_failed {
        return Err(Error::Stopped { what: "a volume could not be removed" });
    }
    let volumes = inner.sealed_volumes();
    let oldest = inner.volumes.oldest()?;
    let short_space = inner.short_space()?;
    let index = inner.keyspace.index.read();
    // A moved needle becomes newer than all needles before it. That is correct only for needles
    // after all places where damage hides keys.
    let hidden_end = index.hidden.end().map_or(0, |end| end.segment());
    let longest_record = 2 * inner.options.big_object_bytes;
    let is_candidate = |number: u32| {
        number > hidden_end
            && !volume_states.damaged.contains(&number)
            && match filter {
                VolumeFilter::Listed(listed) => listed.contains(&number),
                VolumeFilter::All | VolumeFilter::Cold => !volume_states.stuck.contains(&number),
            }
    };
    let candidates = volumes.iter().filter(|volume| is_candidate(volume.number)).map(|volume| {
        let found = index.volumes.get(volume.number);
        let needed_from = tombstones_needed_from(inner, volume.number, oldest);
        let (ended, needed) = match volume.number < needed_from.segment() {
            true => (found.tombstone_bytes, 0),
            false => (0, found.tombstone_bytes),
        };
        let dead_bytes = found.dead_bytes + ended;
        let move_bytes = found.live_bytes + needed;
        let bytes = u64::from(volume.bytes);
        let unused = unused_bytes(bytes, dead_bytes + move_bytes, longest_record);
        let dead_bytes = dead_bytes + unused;
        let candidate = Candidate { number: volume.number, bytes, dead_bytes, move_bytes };
        (candidate, volume.is_local)
    });
    let is_worthwhile = |(candidate, is_local): (Candidate, bool)| {
        (is_local || candidate.dead_share() >= REMOTE_DEAD_SHARE).then_some(candidate)
    };
    let mut candidates: Vec<Candidate> = candidates.filter_map(is_worthwhile).collect();
    drop(index);
    short_space.retain(&mut candidates);
    if matches!(filter, VolumeFilter::Cold) {
        volume_states.hot.remove_from(&mut candidates, dead_share_min, now());
    }
    let whole_bytes = short_space.whole_bytes;
    let chosen = choose(candidates.into_iter(), whole_bytes, dead_share_min);
    Ok(chosen.map(|volume| (volume, tombstones_needed_from(inner, volume.number, oldest))))
}

/// Returns the position at or after which a volume's tombstones must be kept.
///
/// A tombstone deletes needles in the same or older volumes, so the oldest volume needs none,
/// except those that the checkpoint lacks: it still contains the objects that they delete.
fn tombstones_needed_from(inner: &Inner, volume: u32, oldest: Option<u32>) -> Lsn {
    match inner.keyspace.index_files.applied() {
        _ if oldest != Some(volume) => Lsn::default(),
        // Without a checkpoint, opening replays the whole log.
        Lsn(0) => Lsn(u64::MAX),
        applied => applied,
    }
}

/// Moves a volume's live needles, removes the volume, and counts both in `done`.
///
/// A volume without live needles is not read: the index knows all its needles.
///
/// 1. Live needles, and tombstones that may still be needed, are appended to the log with their
///    versions, under the locks of their keys. After a crash both copies exist and are equal.
/// 2. Once they are durable, the index gets their new positions.
/// 3. The volume has no live needles: it is removed from the manifest, then its index is removed,
///    then the volume. A crash in between leaves a volume without an index, which is listed and
///    read again. So a volume that is listed or has an index, but does not exist, was lost.
/// 4. The volume's file becomes a spare file of the log, first for compaction's reserve.
fn compact_volume(
    inner: &Inner,
    volume: &Candidate,
    tombstones_needed_from: Lsn,
    pace: Pace,
    volume_states: &mut VolumeStates,
    stop: &AtomicBool,
    done: &mut CompactionReport,
) -> Result<()> {
    let number = volume.number;
    debug_assert!(!volume_states.damaged.contains(&number), "a damaged volume may be recovered");
    debug_assert!(
        inner.volumes.log.segments().last().is_none_or(|current| current.number > number),
        "the volume being written is not compacted"
    );
    inner.maintenance.admission.begin_volume(*volume);
    if volume.move_bytes > 0 {
        let mut mover = Mover::new(inner, tombstones_needed_from, pace);
        let mut outcome = Ok(());
        let mut each = |at: Position, record: &[u8]| {
            if outcome.is_ok() && !stop.load(Ordering::Relaxed) {
                outcome = mover.append_needed(at, record);
            }
        };
        // Direct reads are much longer than the kernel's readahead, so that the arm of a rotational
        // disk moves less often.
        let scanned = match inner.volumes.disk.scheduler() {
            Some(_) => inner.volumes.log.scan_direct(number, &mut each),
            None => inner.volumes.log.scan(number, &mut each),
        };
        let settled = mover.finish_batch();
        done.bytes_moved += mover.bytes;
        outcome?;
        settled?;
        if !mover.is_whole || !matches!(&scanned, Ok(damage) if damage.is_empty()) {
            volume_states.damaged.insert(number);
            scanned?;
            return Ok(());
        }
    }
    if stop.load(Ordering::Relaxed) {
        return Ok(());
    }
    if inner.keyspace.index.read().volumes.get(number).live_needles > 0 {
        volume_states.stuck.insert(number);
        return Ok(());
    }
    let removed =
        remove_index(inner, number).and_then(|()| Ok(inner.volumes.log.remove_segment(number)?));
    volume_states.indexed.remove(&number);
    if let Err(error) = removed {
        volume_states.removal_failed = true;
        return Err(error);
    }
    inner.keyspace.index.write().remove_volume(number);
    done.volumes_removed += 1;
    done.bytes_freed += volume.bytes;
    Counters::count(&inner.counters.local().volumes_compacted);
    inner.maintenance.admission.note_freed();
    inner.measure_space()?;
    Ok(())
}

/// Removes a volume from the manifest, and its index from the disk, durably.
fn remove_index(inner: &Inner, volume: u32) -> Result<()> {
    if let Some(manifest) = &inner.volumes.manifest {
        manifest.remove(volume, inner.keyspace.index_files.applied())?;
    }
    inner.volumes.indexes.forget(volume);
    match inner.volumes.disk.remove(&names::index(volume)) {
        Err(error) if error.is_not_found() => Ok(()),
        removed => Ok(removed.and_then(|()| inner.volumes.disk.sync_dir(""))?),
    }
}
