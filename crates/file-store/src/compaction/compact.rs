//! Getting space back: what lives in a volume with dead bytes moves to the end of the log, and the
//! volume is removed. Which volume and when is decided in `plan.rs`.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use haul_append_log::Lsn;

use crate::compaction::mover::{Mover, Pace};
use crate::compaction::plan::{Candidate, choose, unused_bytes};
use crate::compaction::upkeep::Upkeep;
use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::inner::Inner;
use crate::names;

/// On request, a volume is compacted already when a tenth of it is dead, in thousandths.
const ASKED_DEAD_SHARE: u64 = 100;

/// What a compaction did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Volumes removed.
    pub volumes_removed: u64,
    /// Bytes of their files.
    pub bytes_freed: u64,
    /// Bytes that lived in them and were written again.
    pub bytes_moved: u64,
}

/// The volumes among which the next one to compact is chosen.
#[derive(Debug, Clone, Copy)]
enum Among<'a> {
    /// All but those that an earlier compaction could not empty.
    All,
    /// As `All`, but without those that still lose live bytes.
    Cold,
    /// The volumes with these numbers.
    Listed(&'a BTreeSet<u32>),
}

impl Inner {
    /// Compacts every volume that is worth it, each once at most. Where space is short, every
    /// volume with dead bytes is.
    pub(crate) fn compact_all(&self, stop: &AtomicBool) -> Result<Compacted> {
        let mut done = Compacted::default();
        if self.index_files.applied() > Lsn::default() {
            // Tombstones that the checkpoint has are not needed any more. Without space for a new
            // one, they are moved.
            drop(self.checkpoint());
        }
        let mut upkeep = self.upkeep.lock();
        upkeep.stuck.clear();
        let mut left: BTreeSet<u32> =
            self.sealed_volumes().iter().map(|volume| volume.number).collect();
        drop(upkeep);
        loop {
            // Others who compact have a turn between two volumes.
            let mut upkeep = self.upkeep.lock();
            let line = match self.measure_space()? {
                marks if self.admission.free_bytes() < marks.slow => 0,
                marks => marks.line(self.admission.free_bytes()).min(ASKED_DEAD_SHARE),
            };
            let chosen = self.choose_volume(line, &mut upkeep, Among::Listed(&left))?;
            let Some((volume, ends_needed_from)) = chosen else { return Ok(done) };
            left.remove(&volume.number);
            self.compact_volume(
                &volume,
                ends_needed_from,
                Pace::Asked,
                &mut upkeep,
                stop,
                &mut done,
            )?;
            if stop.load(Ordering::Relaxed) {
                return Ok(done);
            }
        }
    }

    /// Compacts the next volume that is worth it with the space there is now; `false` if there is
    /// none.
    pub(crate) fn compact_next(&self, stop: &AtomicBool) -> Result<bool> {
        let mut upkeep = self.upkeep.lock();
        let marks = self.measure_space()?;
        let free_bytes = self.admission.free_bytes();
        let among = if free_bytes >= marks.relaxed { Among::Cold } else { Among::All };
        let chosen = self.choose_volume(marks.line(free_bytes), &mut upkeep, among)?;
        let Some((volume, ends_needed_from)) = chosen else { return Ok(false) };
        self.admission.found();
        let mut done = Compacted::default();
        let mut compact = |upkeep: &mut Upkeep| {
            let pace = Pace::Background;
            self.compact_volume(&volume, ends_needed_from, pace, upkeep, stop, &mut done)
        };
        match compact(&mut upkeep) {
            Err(Error::Full { .. }) if self.release_indexes(&mut upkeep)? > 0 => {
                compact(&mut upkeep)?
            }
            outcome => outcome?,
        }
        Ok(!stop.load(Ordering::Relaxed))
    }

    /// Chooses the volume to compact. Returns also the place from which on needles that end
    /// something must be moved, see [`Self::ends_needed_from`].
    fn choose_volume(
        &self,
        dead_share_min: u64,
        upkeep: &mut Upkeep,
        among: Among<'_>,
    ) -> Result<Option<(Candidate, Lsn)>> {
        if upkeep.removal_failed {
            let what = "a volume could not be removed; close the store and open it again";
            return Err(Error::Invalid { what: what.to_owned() });
        }
        let volumes = self.sealed_volumes();
        let oldest = self.oldest_volume()?;
        let short_space = self.short_space()?;
        let index = self.index.read();
        // A needle that is moved counts as newer than all before it. That is certain only of
        // needles behind everything that is hidden by damage.
        let hidden_end = index.hidden.end().map_or(0, |end| end.segment());
        let longest_record = 2 * self.options.big_object_bytes;
        let is_candidate = |number: u32| {
            number > hidden_end
                && !upkeep.damaged.contains(&number)
                && match among {
                    Among::Listed(listed) => listed.contains(&number),
                    Among::All | Among::Cold => !upkeep.stuck.contains(&number),
                }
        };
        let candidates =
            volumes.iter().filter(|volume| is_candidate(volume.number)).map(|volume| {
                let found = index.volumes.get(volume.number);
                let needed_from = self.ends_needed_from(volume.number, oldest);
                let (ended, needed) = match volume.number < needed_from.segment() {
                    true => (found.ending_bytes, 0),
                    false => (0, found.ending_bytes),
                };
                let dead_bytes = found.dead_bytes + ended;
                let move_bytes = found.live_bytes + needed;
                let bytes = u64::from(volume.bytes);
                let unused = unused_bytes(bytes, dead_bytes + move_bytes, longest_record);
                let dead_bytes = dead_bytes + unused;
                Candidate { number: volume.number, bytes, dead_bytes, move_bytes }
            });
        let mut candidates: Vec<Candidate> = candidates.collect();
        drop(index);
        short_space.retain(&mut candidates);
        if matches!(among, Among::Cold) {
            upkeep.hot.leave(&mut candidates, dead_share_min, Instant::now());
        }
        let whole_bytes = short_space.whole_bytes;
        let chosen = choose(candidates.into_iter(), whole_bytes, dead_share_min);
        Ok(chosen.map(|volume| (volume, self.ends_needed_from(volume.number, oldest))))
    }

    /// Returns the place from which on the needles of a volume that end something are needed.
    ///
    /// The older needles that they end are in older volumes, or nowhere if the volume is the oldest.
    /// The checkpoint, too, shows what was ended after it as still there.
    fn ends_needed_from(&self, volume: u32, oldest: Option<u32>) -> Lsn {
        match self.index_files.applied() {
            _ if oldest != Some(volume) => Lsn::default(),
            // Without a checkpoint, the whole log is replayed.
            Lsn(0) => Lsn(u64::MAX),
            applied => applied,
        }
    }

    /// Moves what lives in a volume and removes it, and adds that to `done`.
    ///
    /// A volume of which nothing is needed is not read: the index knows all its needles.
    ///
    /// 1. Needles that stand, and tombstones that may still be needed, are appended to the log
    ///    with the versions they have, their keys held. After a crash both copies are there and
    ///    say the same.
    /// 2. They are durable: the index takes the new places.
    /// 3. Nothing in the volume stands any more: it is taken from the manifest, its index is
    ///    removed, then the volume. A crash in between leaves a volume without an index, which is
    ///    listed again and read itself. So a volume that is listed or has an index, and does not
    ///    exist, was lost.
    /// 4. The file of the volume becomes a spare of the log: first of those kept for compaction.
    fn compact_volume(
        &self,
        volume: &Candidate,
        ends_needed_from: Lsn,
        pace: Pace,
        upkeep: &mut Upkeep,
        stop: &AtomicBool,
        done: &mut Compacted,
    ) -> Result<()> {
        let number = volume.number;
        self.admission.begin_volume(*volume);
        if volume.move_bytes > 0 {
            let mut mover = Mover::new(self, ends_needed_from, pace);
            let mut outcome = Ok(());
            let scanned = self.log.scan(number, &mut |at, record| {
                if outcome.is_ok() && !stop.load(Ordering::Relaxed) {
                    outcome = mover.take(at, record);
                }
            });
            let settled = mover.settle();
            done.bytes_moved += mover.bytes;
            outcome?;
            settled?;
            if !mover.is_whole || !matches!(&scanned, Ok(damage) if damage.is_empty()) {
                upkeep.damaged.insert(number);
                scanned?;
                return Ok(());
            }
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        if self.index.read().volumes.get(number).live_needles > 0 {
            upkeep.stuck.insert(number);
            return Ok(());
        }
        let removed =
            self.remove_index(number).and_then(|()| Ok(self.log.remove_segment(number)?));
        upkeep.indexed.remove(&number);
        if let Err(error) = removed {
            upkeep.removal_failed = true;
            return Err(error);
        }
        self.index.write().remove_volume(number);
        done.volumes_removed += 1;
        done.bytes_freed += volume.bytes;
        Counters::count(&self.counters.volumes_compacted);
        self.admission.freed();
        self.measure_space()?;
        Ok(())
    }

    /// Takes a volume from the manifest and removes its index, for good when this returns.
    fn remove_index(&self, volume: u32) -> Result<()> {
        if let Some(manifest) = &self.manifest {
            manifest.remove(volume, self.index_files.applied())?;
        }
        self.indexes.forget(volume);
        match self.volumes.remove(&names::index(volume)) {
            Err(error) if error.is_not_found() => Ok(()),
            removed => Ok(removed.and_then(|()| self.volumes.sync_dir(""))?),
        }
    }
}
