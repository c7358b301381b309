//! Moving needles to the end of the log, a batch at a time.

use std::time::{Duration, Instant};

use haul_append_log::{self as log, Position, Room, Ticket};

use crate::error::{Error, Result};
use crate::format::{Head, Kind, needles};
use crate::index::Index;
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
    /// Nothing older is left that a tombstone could be needed against.
    is_oldest: bool,
    pace: Pace,
    batch: Vec<Moving<'a>>,
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

struct Moving<'a> {
    head: Head,
    ticket: Ticket,
    /// Empty when another needle of the batch holds the key.
    turn: Option<KeyGuard<'a>>,
}

impl<'a> Mover<'a> {
    pub(crate) fn new(inner: &'a Inner, is_oldest: bool, pace: Pace) -> Self {
        let (batch, batch_began) = (Vec::new(), Instant::now());
        let (batch_bytes, bytes, is_whole) = (0, 0, true);
        Self { inner, is_oldest, pace, batch, batch_bytes, batch_began, bytes, is_whole }
    }

    /// Appends the needles of a record that are still needed.
    pub(crate) fn take(&mut self, at: Position, record: &[u8]) -> Result<()> {
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
            self.batch.push(Moving { head, ticket, turn });
            if self.batch.len() == BATCH_NEEDLES || self.batch_bytes >= BATCH_BYTES {
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
        // No thread waits for a key while it holds others without an order.
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

    /// Waits until the batch is durable, applies it to the index, and pauses as the pace asks for.
    pub(crate) fn settle(&mut self) -> Result<()> {
        let mut turns = Vec::with_capacity(self.batch.len());
        for Moving { head, ticket, turn } in self.batch.drain(..) {
            let at = ticket.wait()?;
            self.inner.indexes.push(at, std::slice::from_ref(&head));
            let freed = self.inner.index.write().apply(head, at);
            self.inner.remove_files(&freed);
            turns.push(turn);
        }
        drop(turns);
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
