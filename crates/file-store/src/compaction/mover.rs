//! Moving needles to the end of the log, a batch at a time.

use std::time::{Duration, Instant};

use haul_append_log::{self as log, Lsn, Position, Room, Ticket};
use parking_lot::RwLockReadGuard;

use crate::error::{Error, Result};
use crate::format::{Head, Kind, needles};
use crate::index::entry::{Change, Replaced};
use crate::inner::Inner;
use crate::locks::KeyGuard;

/// How many needles, and how many bytes, are moved with one sync: enough to share it, and so few
/// that a writer in the same batch hardly notices.
const BATCH_NEEDLES: usize = 256;
const BATCH_BYTES: u64 = 256 << 10;

/// The longest pause between two batches.
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// Moves what is needed of one volume.
pub(crate) struct Mover<'a> {
    inner: &'a Inner,
    /// Needles that end something are needed from this place on.
    ends_needed_from: Lsn,
    pace: Pace,
    batch: Vec<Moving>,
    /// Held from the first append of a batch until the batch is applied to the index.
    gate: Option<RwLockReadGuard<'a, ()>>,
    batch_bytes: u64,
    batch_began: Instant,
    pub(crate) bytes: u64,
    /// All records were made of needles known here.
    pub(crate) is_whole: bool,
}

/// How fast needles are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// While writers need no space, only half of the time.
    Background,
    /// As fast as the disk allows: a caller waits.
    Asked,
}

struct Moving {
    head: Head,
    from: Position,
    ticket: Ticket,
    /// Empty when another needle of the batch holds the key.
    turn: Option<KeyGuard>,
}

impl<'a> Mover<'a> {
    pub(crate) fn new(inner: &'a Inner, ends_needed_from: Lsn, pace: Pace) -> Self {
        let (batch, batch_began) = (Vec::new(), Instant::now());
        let (batch_bytes, bytes, is_whole) = (0, 0, true);
        Self {
            inner,
            ends_needed_from,
            pace,
            batch,
            gate: None,
            batch_bytes,
            batch_began,
            bytes,
            is_whole,
        }
    }

    /// Appends the needles of a record that are still needed.
    pub(crate) fn take(&mut self, at: Position, record: &[u8]) -> Result<()> {
        for needle in needles(record) {
            let Ok((head, needle)) = needle else {
                self.is_whole = false;
                continue;
            };
            if !self.may_be_needed(&head, at) {
                continue;
            }
            let turn = self.lock(&head)?;
            if !self.is_needed(&head, at)? {
                if self.batch.is_empty() {
                    // Checkpoints, and the writers behind them, wait for the gate.
                    self.gate = None;
                }
                continue;
            }
            if self.batch.is_empty() {
                self.batch_began = Instant::now();
            }
            let ticket = match self.inner.append(needle, &[], Room::Compaction) {
                Ok(ticket) => ticket,
                // It was stored when objects of its size were small ones, and stays.
                Err(Error::Log(log::Error::TooLong { .. })) => continue,
                Err(other) => return Err(other),
            };
            self.batch_bytes += needle.len() as u64;
            self.batch.push(Moving { head, from: at, ticket, turn });
            if self.batch.len() == BATCH_NEEDLES || self.batch_bytes >= BATCH_BYTES {
                self.settle()?;
            }
        }
        Ok(())
    }

    /// Takes the key of a needle, unless it is ours already.
    fn lock(&mut self, head: &Head) -> Result<Option<KeyGuard>> {
        let inner = self.inner;
        self.gate.get_or_insert_with(|| inner.gate.read());
        if let Some(turn) = inner.keys.try_lock(&head.bucket, &head.key) {
            return Ok(Some(turn));
        }
        let same = |held: &Moving| held.head.bucket == head.bucket && held.head.key == head.key;
        if self.batch.iter().any(same) {
            return Ok(None);
        }
        // No thread waits for a key while it holds others without an order.
        self.settle()?;
        self.gate = Some(inner.gate.read());
        Ok(Some(inner.keys.lock(&head.bucket, &head.key)))
    }

    /// Returns `false` if a needle is certainly not needed; the key need not be locked.
    fn may_be_needed(&self, head: &Head, at: Position) -> bool {
        match head.ends_something() {
            true => at.lsn >= self.ends_needed_from,
            false => self.inner.index.read().is_live(head, at),
        }
    }

    /// Returns `true` if a needle must be moved. Its key is locked.
    fn is_needed(&self, head: &Head, at: Position) -> Result<bool> {
        Ok(match head.kind {
            // Against an older needle of the same key, unless a newer one does that. A tombstone
            // must not be moved after a newer object.
            Kind::Tombstone => self.inner.find(&head.bucket, &head.key)?.is_none(),
            Kind::BucketDeleted => {
                !self.inner.index.read().buckets.contains_key(head.bucket.as_str())
            }
            Kind::UploadEnded => true,
            Kind::Object | Kind::BucketCreated | Kind::UploadStarted | Kind::Part => {
                self.inner.index.read().is_live(head, at)
            }
        })
    }

    /// Waits until the batch is durable, applies it to the index, and pauses as the pace asks for.
    pub(crate) fn settle(&mut self) -> Result<()> {
        let mut turns = Vec::with_capacity(self.batch.len());
        for Moving { head, from, ticket, turn } in self.batch.drain(..) {
            let at = ticket.wait()?;
            let change = moved(head, from);
            self.inner.indexes.push(at, std::slice::from_ref(&change));
            let freed = self.inner.index.write().apply(change, at);
            self.inner.remove_files(&freed);
            turns.push(turn);
        }
        drop(turns);
        self.gate = None;
        if self.inner.is_checkpoint_due(&self.inner.index.read()) {
            self.inner.indexes.wake();
        }
        let bytes = std::mem::take(&mut self.batch_bytes);
        if bytes > 0 {
            self.bytes += bytes;
            self.pass_on(bytes, self.batch_began.elapsed())?;
        }
        Ok(())
    }

    /// Accounts for what was moved to those who admit writers; without writers in need it pauses as
    /// long as the batch took, so that it has half of the disk at most.
    fn pass_on(&self, bytes: u64, took: Duration) -> Result<()> {
        let admission = &self.inner.admission;
        self.inner.measure_space()?;
        admission.moved(bytes);
        if self.pace == Pace::Background && !admission.is_slow() {
            admission.background.pause(took.min(PAUSE_MAX));
        }
        Ok(())
    }
}

/// Returns the change by a needle that was moved: an object replaces itself.
fn moved(head: Head, from: Position) -> Change {
    let replaces = (head.kind == Kind::Object).then(|| Replaced {
        at: from,
        bytes: head.bytes,
        files: head.files.clone().into_boxed_slice(),
    });
    Change { head, replaces }
}
