//! Taking records away: from the front, whole segments at a time, and from the back.

use std::sync::Arc;

use parking_lot::MutexGuard;

use crate::append::batch::{Batch, Tail};
use crate::append::state::{Next, State};
use crate::error::{Error, Result};
use crate::format::HEADER_BYTES;
use crate::log::Log;
use crate::lsn::Lsn;
use crate::read::feeder::Windows;
use crate::read::scan::{Known, scan};
use crate::segments::seal::seal;

impl Log {
    /// Removes a segment that is sealed, with all its records. Reads of them that began before
    /// still succeed. Its file may be kept to be used again.
    ///
    /// # Errors
    /// [`Error::Invalid`] for the segment being written and for one that is not there.
    ///
    /// # Durability
    /// It is gone for good when this returns.
    pub fn remove_segment(&self, number: u32) -> Result<()> {
        let mut segments = self.shared.segments.write();
        if segments.keys().next_back() == Some(&number) {
            return Err(Error::Invalid("the segment being written cannot be removed"));
        }
        // Out of sight first: whoever finds it later would read what its file holds then.
        let removed = segments.remove(&number);
        drop(segments);
        self.pool.retire(removed.ok_or(Error::Invalid("there is no segment of this number"))?)
    }

    /// Removes these segments, and says how many were there: somebody else may remove them too.
    fn remove_segments(&self, numbers: &[u32]) -> Result<usize> {
        let mut removed = 0;
        for number in numbers {
            match self.remove_segment(*number) {
                Ok(()) => removed += 1,
                Err(Error::Invalid(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(removed)
    }

    /// Removes every segment all of whose records lie before `lsn`, and says how many. The
    /// segment `lsn` is in stays, and so does the one being written.
    ///
    /// # Errors
    /// When a file cannot be removed; those before it are.
    ///
    /// # Durability
    /// They are gone for good when this returns.
    pub fn truncate_front(&self, lsn: Lsn) -> Result<usize> {
        let numbers: Vec<u32> = self.shared.segments.read().keys().copied().collect();
        let before = numbers.partition_point(|number| *number < lsn.segment());
        self.remove_segments(&numbers[..before.min(numbers.len().saturating_sub(1))])
    }

    /// Takes back the record at `lsn` and all behind it, acknowledged or not; what is appended
    /// next gets a greater LSN than any of them had. Appending waits meanwhile.
    ///
    /// 1. Everything appended comes to the medium, and nothing more is let in.
    /// 2. The next segment's header says that the log before it ends at `lsn`, and is synced. A
    ///    crash before leaves the log as it was; from here on the records are gone, and recovery
    ///    does the rest.
    /// 3. A seal is put at `lsn`: now the segment says it too.
    /// 4. The segments between are removed.
    ///
    /// # Errors
    /// [`Error::Invalid`] when no record begins at `lsn`, [`Error::Full`] when there is no space
    /// for the next segment; the log is as it was then. [`Error::Latched`], and errors of the
    /// disk while segments are removed, after which the truncation stands.
    ///
    /// # Durability
    /// The records are gone for good when this returns.
    pub fn truncate_back(&self, lsn: Lsn) -> Result<()> {
        self.pause()?;
        let outcome = self.check_boundary(lsn).and_then(|()| self.end_at(lsn));
        let mut state = self.shared.state.lock();
        state.is_paused = false;
        self.shared.tell_room(&mut state);
        self.shared.tell_more(&mut state);
        drop(state);
        self.remove_segments(&outcome?).map(drop)
    }

    /// Lets nothing more in, and waits until all that is in is on the medium.
    fn pause(&self) -> Result<()> {
        let mut state = self.shared.state.lock();
        while state.is_paused {
            state.check_latch()?;
            self.shared.room.wait(&mut state);
        }
        state.is_paused = true;
        drop(state);
        let settled = self.shared.wait_for_all();
        if settled.is_err() {
            self.shared.state.lock().is_paused = false;
        }
        settled
    }

    fn check_boundary(&self, lsn: Lsn) -> Result<()> {
        if lsn == self.synced() {
            return Ok(());
        }
        let segment = self.segment(lsn.segment())?;
        let file = segment.sequential(&*self.shared.disk, false)?;
        let mut is_boundary = false;
        let known = Known::SyncedTo(segment.end().min(match lsn.segment() {
            number if number == self.synced().segment() => self.synced().offset(),
            _ => segment.bytes,
        }));
        let mut each = |at: crate::Position, _: &[u8]| is_boundary |= at.lsn == lsn;
        scan(&segment, &file, known, &Windows::default(), &mut each)?;
        let no_record = Error::Invalid("no record begins at the LSN to truncate at");
        if is_boundary { Ok(()) } else { Err(no_record) }
    }

    /// Steps 2 and 3; returns the segments that are no longer part of the log.
    fn end_at(&self, lsn: Lsn) -> Result<Vec<u32>> {
        let ended = self.segment(lsn.segment())?;
        let ready = self.take_next()?;
        // A header that may be on the medium or not decides whether what is appended next counts.
        let renewed = self.or_latch(self.pool.renew(&ready.segment, lsn))?;
        let tail = Tail { segment: Arc::new(renewed), writer: ready.writer };
        let mut segments = self.shared.segments.write();
        let cut_off = segments.range(lsn.segment() + 1..);
        // Whoever reads in one of them finds nothing more.
        let between = cut_off.map(|(number, segment)| {
            segment.end_at(HEADER_BYTES);
            *number
        });
        let between: Vec<u32> = between.collect();
        segments.insert(tail.segment.number, Arc::clone(&tail.segment));
        drop(segments);
        ended.end_at(lsn.offset());
        let mut state = self.shared.state.lock();
        let number = tail.segment.number;
        let batch = |buffer| Batch::begin(tail, buffer);
        self.shared.go_on_with(&mut state, batch);
        state.synced = Lsn::new(number, HEADER_BYTES);
        drop(state);
        self.or_latch(seal(&*self.shared.disk, &ended, lsn.offset()))?;
        Ok(between)
    }

    /// After a failure of the disk the log takes no more.
    fn or_latch<T>(&self, outcome: Result<T>) -> Result<T> {
        if let Err(Error::Disk(error)) = outcome {
            let mut state = self.shared.state.lock();
            self.shared.latch(&mut state, error);
            return Err(state.check_latch().err().unwrap_or(Error::Invalid("it is latched")));
        }
        outcome
    }

    /// The segment that is ready to be the next, once it is.
    fn take_next(&self) -> Result<Tail> {
        let mut state = self.shared.state.lock();
        loop {
            state.check_latch()?;
            match std::mem::replace(&mut state.next, Next::Missing) {
                Next::Ready(tail) => return Ok(tail),
                Next::Failed(error) => return Err(error),
                Next::Missing => self.wait_for_next(&mut state),
            }
        }
    }

    fn wait_for_next(&self, state: &mut MutexGuard<'_, State>) {
        state.waiting_for_next += 1;
        self.shared.prepare.notify_one();
        self.shared.room.wait(state);
        state.waiting_for_next -= 1;
    }
}
