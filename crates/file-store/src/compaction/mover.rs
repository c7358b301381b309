//! Moves needles to the end of the log, in batches.

use std::time::{Duration, Instant};

use haul_append_log::{Lsn, Position, SpacePriority, Ticket};
use haul_disk::SeekScheduler;
use haul_sync::{RwLockReadGuard, elapsed, now};

use crate::checkpoint::write::is_checkpoint_due;
use crate::error::Result;
use crate::format::{Head, Kind, needles};
use crate::index::entry::{Change, Replaced};
use crate::index::needle_position;
use crate::index::quotas::Reserved;
use crate::index::uploads::UploadName;
use crate::index::version_names::owner;
use crate::inner::Inner;
use crate::locks::KeyGuard;

/// The number of needles, and of bytes, that share a sync: enough to amortize it, and few enough
/// that a writer in the same batch is hardly delayed.
const BATCH_NEEDLES: usize = 256;
const BATCH_BYTES: u64 = 256 << 10;

/// The longest pause between two batches.
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// While reads wait for a rotational disk, a pause is this many times as long as the batch took, up
/// to `YIELD_MAX`: each batch moves the arm away from the reads.
const YIELDED_PER_BUSY: u32 = 9;
const YIELD_MAX: Duration = Duration::from_secs(1);

/// Moves the needles in a volume that are still needed.
pub(crate) struct Mover<'a> {
    inner: &'a Inner,
    /// The position at or after which tombstones are needed.
    tombstones_needed_from: Lsn,
    pace: Pace,
    batch: Vec<PendingMove>,
    /// Held from the first append of a batch until the batch is applied to the index.
    gate: Option<RwLockReadGuard<'a, ()>>,
    batch_bytes: u64,
    batch_began: Instant,
    pub(crate) bytes: u64,
    /// `true` if all records consisted of known needles.
    pub(crate) is_whole: bool,
}

/// The rate of moving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// At most half of the time, unless writers need space.
    Background,
    /// As fast as the disk allows, because a caller waits.
    Requested,
}

struct PendingMove {
    head: Head,
    from: Position,
    ticket: Ticket,
    /// `None` if another needle in the batch holds the key's lock.
    lock: Option<KeyGuard>,
}

impl<'a> Mover<'a> {
    pub(crate) fn new(inner: &'a Inner, tombstones_needed_from: Lsn, pace: Pace) -> Self {
        let (batch, batch_began) = (Vec::new(), now());
        let (batch_bytes, bytes, is_whole) = (0, 0, true);
        Self {
            inner,
            tombstones_needed_from,
            pace,
            batch,
            gate: None,
            batch_bytes,
            batch_began,
            bytes,
            is_whole,
        }
    }

    /// Appends the needles in a record that are still needed.
    pub(crate) fn append_needed(&mut self, at: Position, record: &[u8]) -> Result<()> {
        for needle in needles(record) {
            let Ok((head, needle)) = needle else {
                self.is_whole = false;
                continue;
            };
            // A longer object was stored when `big_object_bytes` was larger. It is not moved,
            // because the space that is reserved for compaction is computed for shorter records.
            let is_too_long = needle.len() as u64 > self.inner.options.record_bytes_max();
            if is_too_long || !self.may_be_needed(&head, at) {
                continue;
            }
            let lock = self.lock(&head)?;
            if !self.is_needed(&head, at)? {
                if self.batch.is_empty() {
                    // Checkpoints, and the writers behind them, wait for the gate.
                    self.gate = None;
                }
                continue;
            }
            if self.batch.is_empty() {
                self.batch_began = now();
            }
            debug_assert!(self.gate.is_some(), "no bucket is deleted while its needles move");
            debug_assert!(self.batch.len() < BATCH_NEEDLES);
            let ticket = self.inner.append(needle, &[], SpacePriority::Compaction)?;
            debug_assert!(ticket.position().lsn > at.lsn, "a needle moves to the end of the log");
            self.batch_bytes += needle.len() as u64;
            self.batch.push(PendingMove { head, from: at, ticket, lock });
            if self.batch.len() == BATCH_NEEDLES || self.batch_bytes >= BATCH_BYTES {
                self.finish_batch()?;
            }
        }
        Ok(())
    }

    /// Locks a needle's key, unless this batch already holds the lock. A version has the lock of
    /// its object's key.
    fn lock(&mut self, head: &Head) -> Result<Option<KeyGuard>> {
        let inner = self.inner;
        self.gate.get_or_insert_with(|| inner.keyspace.gate.read());
        let (bucket, key) = &owner(&head.bucket, &head.key);
        if let Some(lock) = inner.keyspace.keys.try_lock(bucket, key) {
            return Ok(Some(lock));
        }
        let same = |held: &PendingMove| {
            let held = owner(&held.head.bucket, &held.head.key);
            (&*held.0, &*held.1) == (&**bucket, &**key)
        };
        if self.batch.iter().any(same) {
            return Ok(None);
        }
        // A thread that holds locks must not wait for a key out of order.
        self.finish_batch()?;
        self.gate = Some(inner.keyspace.gate.read());
        Ok(Some(inner.keyspace.keys.lock(bucket, key)))
    }

    /// Returns `false` if a needle is certainly not needed. The key need not be locked.
    fn may_be_needed(&self, head: &Head, at: Position) -> bool {
        match head.is_tombstone() {
            true => at.lsn >= self.tombstones_needed_from,
            false => self.inner.keyspace.index.read().is_live(head, at),
        }
    }

    /// Returns `true` if a needle must be moved. The caller has locked its key.
    fn is_needed(&self, head: &Head, at: Position) -> Result<bool> {
        Ok(match head.kind {
            // A tombstone is needed to hide an older needle, unless a newer needle hides it. A
            // tombstone must not be moved behind a newer object.
            Kind::Tombstone => self.inner.find(&head.bucket, &head.key)?.is_none(),
            Kind::BucketDeleted => {
                !self.inner.keyspace.index.read().buckets.contains_key(head.bucket.as_str())
            }
            // A move between the stores of a pool may have brought the upload back. It has all
            // parts of the upload that ended, or newer ones.
            Kind::UploadEnded => {
                !self.inner.keyspace.index.read().uploads.contains_key(&UploadName::of(head))
            }
            Kind::Object | Kind::BucketCreated | Kind::UploadStarted | Kind::Part => {
                self.inner.keyspace.index.read().is_live(head, at)
            }
        })
    }

    /// Waits until the batch is durable, applies it to the index, and pauses as the pace requires.
    pub(crate) fn finish_batch(&mut self) -> Result<()> {
        let mut locks = Vec::with_capacity(self.batch.len());
        for PendingMove { head, from, ticket, lock } in self.batch.drain(..) {
            let at = ticket.wait()?;
            debug_assert!(
                at.lsn.segment() > from.lsn.segment(),
                "its volume is removed afterwards"
            );
            let change = move_change(head, from);
            self.inner.volumes.indexes.push(at, std::slice::from_ref(&change));
            let mut index = self.inner.keyspace.index.write();
            self.inner.announce(&mut index, at);
            let freed = index.apply(change, at);
            drop(index);
            self.inner.remove_files(&freed);
            locks.push(lock);
        }
        drop(locks);
        self.gate = None;
        if is_checkpoint_due(self.inner, &self.inner.keyspace.index.read()) {
            self.inner.volumes.indexes.wake();
        }
        let bytes = std::mem::take(&mut self.batch_bytes);
        if bytes > 0 {
            self.bytes += bytes;
            self.report_and_pause(bytes, elapsed(self.batch_began))?;
        }
        Ok(())
    }

    /// Reports moved bytes to the admission. Without delayed writers, pauses as long as the batch
    /// took, so that compaction uses at most half of the disk's time.
    fn report_and_pause(&self, bytes: u64, took: Duration) -> Result<()> {
        let admission = &self.inner.maintenance.admission;
        self.inner.measure_space()?;
        admission.note_moved(bytes);
        if self.pace == Pace::Background && !admission.is_slow() {
            let scheduler = self.inner.volumes.disk.scheduler();
            let pause = match scheduler.is_some_and(SeekScheduler::has_waiting_reads) {
                true => took.saturating_mul(YIELDED_PER_BUSY).min(YIELD_MAX),
                false => took.min(PAUSE_MAX),
            };
            admission.background.pause(pause);
        }
        Ok(())
    }
}

/// Returns the change that a moved needle makes: an object replaces itself.
fn move_change(head: Head, from: Position) -> Change {
    let replaces = (head.kind == Kind::Object).then(|| Replaced {
        at: needle_position(&head, from),
        bytes: head.bytes,
        files: head.files.clone().into_boxed_slice(),
    });
    Change { head, replaces, reserved: Reserved::nothing(), event: None }
}
