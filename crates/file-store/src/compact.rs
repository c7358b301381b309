//! Getting space back: what lives in a mostly dead volume moves to the end of the log, and the
//! volume is removed.

use std::sync::atomic::{AtomicBool, Ordering};

use haul_append_log::{self as log, Position, Room, SegmentInfo, Ticket};

use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::format::{Head, Kind, needles};
use crate::index::Index;
use crate::inner::Inner;
use crate::locks::KeyGuard;
use crate::names;
use crate::upkeep::Upkeep;

/// In the background a volume is compacted when at least this much of it is dead: moving half a
/// volume to free the other half costs as much writing as it gains.
pub(crate) const BACKGROUND_DEAD_PERCENT_MIN: u64 = 50;

/// When asked for, a volume is compacted already when a tenth of it is dead.
pub(crate) const ASKED_DEAD_PERCENT_MIN: u64 = 10;

/// How many needles are moved with one sync.
const BATCH_NEEDLES: usize = 256;

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

impl Inner {
    /// Compacts the volumes of which at least so much is dead, those with the least to move first.
    pub(crate) fn compact(&self, dead_percent_min: u64, stop: &AtomicBool) -> Result<Compacted> {
        let mut upkeep = self.upkeep.lock();
        if upkeep.removal_failed {
            let what = "a volume could not be removed; close the store and open it again";
            return Err(Error::Invalid { what: what.to_owned() });
        }
        let mut done = Compacted::default();
        let mut left = self.sealed_volumes();
        left.retain(|volume| !upkeep.damaged.contains(&volume.number));
        while let Some((volume, is_oldest)) = self.take_deadest(&mut left, dead_percent_min)? {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let (moved, removed) =
                self.compact_volume(volume.number, is_oldest, &mut upkeep, stop)?;
            done.bytes_moved += moved;
            if removed {
                done.volumes_removed += 1;
                done.bytes_freed += u64::from(volume.bytes);
                Counters::count(&self.counters.volumes_compacted);
            }
        }
        Ok(done)
    }

    /// Takes the volume with the least to move out of those of which enough is dead, and says
    /// whether it is the oldest of all: what its tombstones were needed against is gone.
    ///
    /// It is looked for anew each time, since with the oldest the next one becomes the oldest.
    fn take_deadest(
        &self,
        volumes: &mut Vec<SegmentInfo>,
        dead_percent_min: u64,
    ) -> Result<Option<(SegmentInfo, bool)>> {
        let oldest = self.oldest_volume()?;
        let index = self.index.read();
        let deadest = volumes
            .iter()
            .enumerate()
            .filter_map(|(place, volume)| {
                let found = index.volumes.get(volume.number);
                let is_oldest = oldest == Some(volume.number);
                let (ended, to_move) = match is_oldest {
                    true => (found.ending_bytes, found.live_bytes),
                    false => (0, found.live_bytes + found.ending_bytes),
                };
                let dead = found.dead_bytes + ended;
                let enough = dead * 100 >= u64::from(volume.bytes) * dead_percent_min;
                enough.then_some((to_move, place, is_oldest))
            })
            .min();
        Ok(deadest.map(|(_, place, is_oldest)| (volumes.remove(place), is_oldest)))
    }

    /// Moves what lives in a volume and removes it; returns the bytes moved and whether it went.
    ///
    /// 1. Needles that stand, and tombstones that may still be needed, are appended to the log
    ///    with the versions they have, their keys held. After a crash both copies are there and
    ///    say the same.
    /// 2. They are on the medium: the index takes the new places.
    /// 3. Nothing in the volume stands any more: its index is removed, then the volume. A crash in
    ///    between leaves a volume without an index, which is read itself. So an index without its
    ///    volume is always one whose volume was lost.
    fn compact_volume(
        &self,
        volume: u32,
        is_oldest: bool,
        upkeep: &mut Upkeep,
        stop: &AtomicBool,
    ) -> Result<(u64, bool)> {
        let mut mover = Mover::new(self, is_oldest);
        let mut outcome = Ok(());
        let scanned = self.log.scan(volume, &mut |at, record| {
            if outcome.is_ok() && !stop.load(Ordering::Relaxed) {
                outcome = mover.take(at, record);
            }
        });
        outcome?;
        mover.settle()?;
        let (moved, is_whole) = (mover.bytes, mover.is_whole);
        // A volume that is needed no more wears out with what is moved, and is removed here.
        let mut index = self.index.write();
        index.volumes.take_worn();
        let is_needed = index.volumes.get(volume).live_needles > 0;
        drop(index);
        if !is_whole || !matches!(&scanned, Ok(damage) if damage.is_empty()) {
            upkeep.damaged.insert(volume);
            scanned?;
            return Ok((moved, false));
        }
        if is_needed || stop.load(Ordering::Relaxed) {
            return Ok((moved, false));
        }
        let removed =
            self.remove_index(volume).and_then(|()| Ok(self.log.remove_segment(volume)?));
        if let Err(error) = removed {
            upkeep.removal_failed = true;
            return Err(error);
        }
        self.index.write().volumes.remove(volume);
        Ok((moved, true))
    }

    /// Removes the index of a volume, for good when this returns.
    fn remove_index(&self, volume: u32) -> Result<()> {
        match self.volumes.remove(&names::index(volume)) {
            Err(error) if error.is_not_found() => Ok(()),
            removed => Ok(removed.and_then(|()| self.volumes.sync_dir(""))?),
        }
    }
}

/// Moves needles to the end of the log, a batch at a time.
struct Mover<'a> {
    inner: &'a Inner,
    /// Nothing older is left that a tombstone could be needed against.
    is_oldest: bool,
    batch: Vec<Moving<'a>>,
    bytes: u64,
    /// All records were made of needles known here.
    is_whole: bool,
}

struct Moving<'a> {
    head: Head,
    ticket: Ticket,
    /// Empty when another needle of the batch holds the key.
    turn: Option<KeyGuard<'a>>,
}

impl<'a> Mover<'a> {
    fn new(inner: &'a Inner, is_oldest: bool) -> Self {
        Self { inner, is_oldest, batch: Vec::new(), bytes: 0, is_whole: true }
    }

    fn take(&mut self, at: Position, record: &[u8]) -> Result<()> {
        for needle in needles(record) {
            let Ok((head, needle)) = needle else {
                self.is_whole = false;
                continue;
            };
            if !self.is_needed(&self.inner.index.read(), &head, at) {
                continue;
            }
            let turn = self.lock(&head)?;
            if !self.is_needed(&self.inner.index.read(), &head, at) {
                continue;
            }
            let room = if head.ends_something() { Room::Reserve } else { Room::Ordinary };
            let ticket = match self.inner.append(needle, &[], room) {
                Ok(ticket) => ticket,
                // It was stored when objects of its size were small ones, and stays.
                Err(Error::Log(log::Error::TooLong { .. })) => continue,
                Err(other) => return Err(other),
            };
            self.bytes += needle.len() as u64;
            self.batch.push(Moving { head, ticket, turn });
            if self.batch.len() == BATCH_NEEDLES {
                self.settle()?;
            }
        }
        Ok(())
    }

    /// Takes the key of a needle, unless it is ours already.
    fn lock(&mut self, head: &Head) -> Result<Option<KeyGuard<'a>>> {
        let inner = self.inner;
        if let Some(turn) = inner.keys.try_lock(&head.bucket, &head.key) {
            return Ok(Some(turn));
        }
        let same = |held: &Moving<'_>| held.head.bucket == head.bucket && held.head.key == head.key;
        if self.batch.iter().any(same) {
            return Ok(None);
        }
        // Nobody waits for a key while holding others without an order.
        self.settle()?;
        Ok(Some(inner.keys.lock(&head.bucket, &head.key)))
    }

    fn is_needed(&self, index: &Index, head: &Head, at: Position) -> bool {
        match head.kind {
            // Against an older needle of the same key, unless a newer one does that.
            Kind::Tombstone => !self.is_oldest && index.object(&head.bucket, &head.key).is_none(),
            Kind::BucketDeleted => {
                !self.is_oldest && !index.buckets.contains_key(head.bucket.as_str())
            }
            Kind::UploadEnded => !self.is_oldest,
            Kind::Object | Kind::BucketCreated | Kind::UploadStarted | Kind::Part => {
                index.is_live(head, at)
            }
        }
    }

    /// Waits until the batch is on the medium, and lets the index take the new places.
    fn settle(&mut self) -> Result<()> {
        let mut turns = Vec::with_capacity(self.batch.len());
        for Moving { head, ticket, turn } in self.batch.drain(..) {
            let at = ticket.wait()?;
            let freed = self.inner.index.write().apply(head, at);
            self.inner.remove_files(&freed);
            turns.push(turn);
        }
        Ok(())
    }
}
