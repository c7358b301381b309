//! Removes records: whole segments, or all records at or after an LSN.

use std::sync::Arc;

use super::Log;
use crate::append::batch::{Batch, Tail};
use crate::append::lock::Locked;
use crate::append::seal::seal;
use crate::append::state::Next;
use crate::error::{Error, Result};
use crate::format::{HEADER_BYTES, Kind};
use crate::lsn::Lsn;
use crate::read::segment_reader::SegmentReader;

/// The number of bytes read to check whether a record begins at an offset.
const WINDOW_BYTES: usize = 64 << 10;

impl Log {
    /// Removes a sealed segment (one that is no longer being written) with all its records. Reads
    /// that began before the removal still succeed. The log may keep the file as a spare file, to
    /// be recycled.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if `number` is the segment being written, does not exist, or is
    /// not the oldest one ([`crate::Options::removes_in_order`]), and [`Error::Disk`] if its file
    /// cannot be removed or renamed.
    ///
    /// # Durability
    /// When this returns `Ok`, the removal survives a power cut.
    pub fn remove_segment(&self, number: u32) -> Result<()> {
        // The removal is durable before the next segment's removal begins: a power cut must not
        // leave a gap between segments.
        let _one_at_a_time = self.removal.lock();
        let oldest = self.shared.segments.read().keys().next().copied();
        if self.removes_in_order && oldest.is_some_and(|oldest| oldest < number) {
            return Err(Error::Invalid(
                "the option removes_in_order permits only the oldest segment",
            ));
        }
        self.remove(number)
    }

    /// Removes a segment. The caller holds the lock for removals.
    fn remove(&self, number: u32) -> Result<()> {
        let mut segments = self.shared.segments.write();
        if segments.keys().next_back() == Some(&number) {
            return Err(Error::Invalid("the segment being written cannot be removed"));
        }
        // The segment is removed from the map first, so that no new read uses its file. After
        // `retire` the file may be reused and overwritten.
        let removed = segments.remove(&number);
        drop(segments);
        self.pool.retire(removed.ok_or(Error::Invalid("no segment has this number"))?)
    }

    /// Removes segments with `remove`, and returns the number removed. It skips missing segments,
    /// because other threads may remove them concurrently.
    fn remove_segments(numbers: &[u32], remove: impl Fn(u32) -> Result<()>) -> Result<usize> {
        let mut removed = 0;
        for number in numbers {
            match remove(*number) {
                Ok(()) => removed += 1,
                Err(Error::Invalid(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(removed)
    }

    /// Removes all segments before the one that contains `lsn`, and returns the number removed.
    /// Never removes the segment being written.
    ///
    /// # Errors
    /// Returns [`Error::Disk`] if a file cannot be removed. The segments with lower numbers are
    /// then already removed.
    ///
    /// # Durability
    /// When this returns `Ok`, the removal survives a power cut.
    pub fn truncate_front(&self, lsn: Lsn) -> Result<usize> {
        let numbers: Vec<u32> = self.shared.segments.read().keys().copied().collect();
        let before = numbers.partition_point(|number| *number < lsn.segment());
        let numbers = &numbers[..before.min(numbers.len().saturating_sub(1))];
        Self::remove_segments(numbers, |number| self.remove_segment(number))
    }

    /// Removes the record at `lsn` and all later records, acknowledged or not. Records appended
    /// afterwards get LSNs greater than any removed record had. Appends block during the
    /// truncation.
    ///
    /// 1. Pauses appends, and waits until all records are synced.
    /// 2. Writes `lsn` into the header of the next segment, which has no records yet, as the LSN at
    ///    which the earlier log ends, and syncs the header. A crash before the header is durable
    ///    leaves the log unchanged. Once it is durable, the records are removed, and recovery
    ///    completes the following steps.
    /// 3. Writes and syncs a seal, the record that ends a segment, at `lsn`.
    /// 4. Removes the segments between the segment that contains `lsn` and the next segment.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if no record begins at `lsn`, or if bytes of its segment were
    /// locked by [`Log::lock_payload`], and [`Error::Full`] if the disk has no space for the next
    /// segment; in these cases the log is unchanged. Returns [`Error::Latched`] if a write or sync
    /// failed. Returns [`Error::Disk`] if a segment cannot be removed; the truncation is effective
    /// nevertheless.
    ///
    /// # Durability
    /// When this returns `Ok`, the truncation survives a power cut.
    pub fn truncate_back(&self, lsn: Lsn) -> Result<()> {
        let _one_at_a_time = self.removal.lock();
        self.pause()?;
        let outcome = self
            .check_boundary(lsn)
            .and_then(|()| self.close_pages(lsn))
            .and_then(|()| self.end_at(lsn));
        let mut state = self.shared.state.lock_deferring_wakers();
        state.is_paused = false;
        self.shared.room.notify_all();
        self.shared.more.notify_all();
        drop(state);
        // These segments are no longer part of the log, so their order does not matter.
        Self::remove_segments(&outcome?, |number| self.remove(number)).map(drop)
    }

    /// Fails if sockets may still send pages of the segment that is about to be sealed.
    fn close_pages(&self, lsn: Lsn) -> Result<()> {
        match self.segment_of(lsn)?.pages.retire() {
            true => Ok(()),
            false => Err(Error::Invalid("bytes of the segment to truncate are locked in memory")),
        }
    }

    /// Pauses all appends and waits until all records are synced.
    ///
    /// Appends wait for this thread until the truncation ends. A waker may append, so this thread
    /// must not call wakers; it leaves them to the commit thread.
    fn pause(&self) -> Result<()> {
        let mut state = self.shared.state.lock_deferring_wakers();
        while state.is_paused {
            state.check_latch()?;
            state.wait(&self.shared.room);
        }
        state.is_paused = true;
        let synced = self.shared.wait_for_all(&mut state);
        if synced.is_err() {
            state.is_paused = false;
        }
        synced
    }

    fn check_boundary(&self, lsn: Lsn) -> Result<()> {
        if lsn == self.synced() {
            return Ok(());
        }
        let segment = self.segment(lsn.segment())?;
        let file = segment.sequential(&*self.shared.disk, false)?;
        let synced = self.synced();
        let is_last = lsn.segment() == synced.segment();
        let limit = if is_last { synced.offset() } else { segment.end() };
        let mut reader = SegmentReader::new(&segment, &file, limit, WINDOW_BYTES);
        match reader.record_at(lsn.offset())?.map(|(header, _)| header.kind) {
            // A watermark or close record begins at `lsn` if the log ended at `lsn` before that
            // record was written.
            Some(Kind::Data | Kind::Watermark | Kind::Close) => Ok(()),
            _ => Err(Error::Invalid("no record begins at the LSN to truncate at")),
        }
    }

    /// Executes steps 2 and 3 of [`Log::truncate_back`]. Returns the numbers of the segments to
    /// remove in step 4.
    fn end_at(&self, lsn: Lsn) -> Result<Vec<u32>> {
        debug_assert!(lsn <= self.synced(), "only synced records are removed");
        let ended = self.segment(lsn.segment())?;
        let ready = self.take_next()?;
        // After a failure it is unknown whether the new header is durable, and therefore whether
        // the records after `lsn` still belong to the log. The log is therefore stopped.
        self.pool.set_previous(lsn.segment());
        let renewed = self.or_latch(self.pool.renew(&ready.segment, lsn))?;
        let tail = Tail { segment: Arc::new(renewed), writer: ready.writer };
        let mut segments = self.shared.segments.write();
        let detached = segments.range(lsn.segment() + 1..);
        // Readers that have such a segment open see no more records in it.
        let between = detached.map(|(number, segment)| {
            segment.end_at(HEADER_BYTES);
            *number
        });
        let between: Vec<u32> = between.collect();
        segments.insert(tail.segment.number, Arc::clone(&tail.segment));
        drop(segments);
        ended.end_at(lsn.offset());
        let mut state = self.shared.state.lock_deferring_wakers();
        let number = tail.segment.number;
        let batch = |buffer| Batch::in_new_segment(tail, buffer);
        self.shared.continue_with(&mut state, batch);
        debug_assert!(Lsn::new(number, HEADER_BYTES) > state.synced);
        state.synced = Lsn::new(number, HEADER_BYTES);
        drop(state);
        self.or_latch(seal(&*self.shared.disk, &ended, lsn.offset()))?;
        Ok(between)
    }

    /// Stops the log permanently if `outcome` is a disk error, and then returns [`Error::Latched`].
    fn or_latch<T>(&self, outcome: Result<T>) -> Result<T> {
        if let Err(Error::Disk(error)) = outcome {
            let mut state = self.shared.state.lock_deferring_wakers();
            self.shared.latch(&mut state, error);
            return Err(state.check_latch().err().unwrap_or(Error::Invalid("the log is latched")));
        }
        outcome
    }

    /// Waits until the next segment is ready, and takes it.
    fn take_next(&self) -> Result<Tail> {
        let mut state = self.shared.state.lock_deferring_wakers();
        loop {
            state.check_latch()?;
            match std::mem::replace(&mut state.next, Next::Missing) {
                Next::Ready(tail) => return Ok(tail),
                Next::Failed(error, _) => return Err(error),
                Next::Missing => {
                    state.check_pause()?;
                    self.wait_for_next(&mut state);
                }
            }
        }
    }

    fn wait_for_next(&self, state: &mut Locked<'_>) {
        state.waiting_for_next += 1;
        self.shared.prepare.notify_one();
        state.wait(&self.shared.room);
        state.waiting_for_next -= 1;
    }
}
