//! Appends records to the filling batch, the batch that is not written yet, and switches to the
//! next segment when the current one is full.

use std::sync::Arc;

use haul_disk::AlignedBuf;

use crate::append::buffers::long_buffer;
use crate::append::commit::Shared;
use crate::append::draft::Draft;
use crate::append::lock::Locked;
use crate::append::state::{Next, State};
use crate::append::ticket::Ticket;
use crate::error::{Error, Result};
use crate::format::{HEADER_BYTES, Kind};
use crate::lsn::Position;
use crate::segments::bytes_for_record;
use crate::segments::pool::Pool;
use crate::segments::reserve::SpacePriority;

/// The reason why a record cannot be appended yet.
enum Blocked {
    /// The filling batch is full or ends with a seal (the record that ends a segment), or a
    /// truncation is in progress.
    BatchFull,
    /// The next segment is not ready.
    NextSegment,
    /// No next segment that has at least this length is ready.
    LongerSegment(u32),
}

#[derive(Debug)]
pub(crate) struct Appender {
    pub(crate) shared: Arc<Shared>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) payload_bytes_max: u32,
}

impl Appender {
    /// Implements [`crate::Log::append`].
    pub(crate) fn append(&self, payload: &[&[u8]], priority: SpacePriority) -> Result<Ticket> {
        let ticket = self.push(&self.draft(payload, priority)?)?;
        self.shared.counters.record();
        Ok(ticket)
    }

    /// Implements [`crate::Log::try_append`].
    pub(crate) fn try_append(
        &self,
        payload: &[&[u8]],
        priority: SpacePriority,
    ) -> Result<Option<Ticket>> {
        let draft = self.draft(payload, priority)?;
        match self.try_push(&draft) {
            Err(Error::Full { .. }) => Ok(None),
            Ok(Some(ticket)) => {
                self.shared.counters.record();
                Ok(Some(ticket))
            }
            other => other,
        }
    }

    fn draft<'a>(&self, payload: &'a [&'a [u8]], priority: SpacePriority) -> Result<Draft<'a>> {
        Draft::data(payload, priority, self.payload_bytes_max)
    }

    pub(crate) fn push_close(&self) -> Result<Ticket> {
        self.push(&Draft::close())
    }

    /// Implements [`crate::Log::end_segment`].
    pub(crate) fn end_segment(&self) -> Result<bool> {
        let mut state = self.shared.state.lock();
        let number = state.filling.tail.segment.number;
        if state.filling.offset() == HEADER_BYTES {
            return Ok(false);
        }
        loop {
            state.check_latch()?;
            if state.filling.tail.segment.number != number || state.filling.sealed {
                return self.shared.wait_for_all(&mut state).map(|()| true);
            }
            match &state.next {
                _ if state.is_paused => state.wait(&self.shared.room),
                // The reserve is for records that need it.
                Next::Ready(next) if next.segment.is_reserve => return Ok(false),
                Next::Ready(_) => {
                    state.filling.push_empty(Kind::Seal);
                    self.shared.end_gathering(&mut state);
                }
                Next::Failed(..) => {
                    if let Next::Failed(error, _) =
                        std::mem::replace(&mut state.next, Next::Missing)
                    {
                        return Err(error);
                    }
                }
                Next::Missing => {
                    state.check_pause()?;
                    self.wait_for_next(&mut state, SpacePriority::Ordinary);
                }
            }
        }
    }

    /// Waits until the next segment was created, or could not be created.
    fn wait_for_next(&self, state: &mut Locked<'_>, priority: SpacePriority) {
        state.waiting_for_next += 1;
        state.waiting_by_priority[priority as usize] += 1;
        self.shared.prepare.notify_one();
        state.wait(&self.shared.room);
        state.waiting_for_next -= 1;
        state.waiting_by_priority[priority as usize] -= 1;
    }

    fn push(&self, draft: &Draft<'_>) -> Result<Ticket> {
        let mut longer = None;
        let mut state = self.shared.state.lock();
        while let Some(blocked) = self.make_room(&mut state, draft, &mut longer)? {
            match blocked {
                // This thread commits the batch itself, because the commit thread may be busy
                // calling a waker.
                Blocked::BatchFull if state.can_commit() => {
                    self.shared.commit_and_hand_over(&mut state);
                }
                Blocked::BatchFull => {
                    self.shared.request_room(&mut state);
                    state.wait(&self.shared.room);
                }
                Blocked::NextSegment => self.wait_for_next(&mut state, draft.priority),
                Blocked::LongerSegment(bytes) => {
                    state.needed.add(draft.priority, bytes);
                    self.shared.prepare.notify_one();
                    state.wait(&self.shared.room);
                }
            }
        }
        Ok(self.append_to_batch(&mut state, draft))
    }

    /// Appends the record, or returns `None` if it must wait. Then requests what it waits for.
    fn try_push(&self, draft: &Draft<'_>) -> Result<Option<Ticket>> {
        let mut longer = None;
        let mut state = self.shared.state.lock();
        match self.make_room(&mut state, draft, &mut longer)? {
            None => return Ok(Some(self.append_to_batch(&mut state, draft))),
            Some(Blocked::BatchFull) => {
                self.shared.end_gathering(&mut state);
                self.shared.request_commit(&mut state);
            }
            // No thread waits, so the state records the request until the preparing thread has
            // created the segment.
            Some(Blocked::NextSegment) => {
                state.request_next(draft.priority);
                self.shared.prepare.notify_one();
            }
            Some(Blocked::LongerSegment(bytes)) => {
                state.needed.add(draft.priority, bytes);
                self.shared.prepare.notify_one();
            }
        }
        Ok(None)
    }

    /// Returns `None` if the record fits into the filling batch, otherwise the reason why it must
    /// wait. Seals the segment if the record does not fit into it and the next segment is ready.
    ///
    /// For a long record, which does not fit into a standard buffer, moves the filling batch to a
    /// longer buffer, even if the batch has records already: short records would otherwise fill
    /// each new batch first. `longer` is this buffer while it is not used. It is allocated without
    /// the lock.
    fn make_room(
        &self,
        state: &mut Locked<'_>,
        draft: &Draft<'_>,
        longer: &mut Option<AlignedBuf>,
    ) -> Result<Option<Blocked>> {
        loop {
            state.check_latch()?;
            let filling = &state.filling;
            if state.is_paused || filling.sealed {
                return Ok(Some(Blocked::BatchFull));
            }
            let segment = &filling.tail.segment;
            let record_bytes = draft.record_bytes();
            let may_use = self.pool.may_use(segment, draft.priority);
            if may_use && segment.holds(filling.offset(), record_bytes) {
                if filling.fits(record_bytes) {
                    return Ok(None);
                }
                let is_longer = state.buffers.is_longer(filling.buffer_bytes());
                if is_longer && filling.has_new() || !state.buffers.is_long(record_bytes) {
                    return Ok(Some(Blocked::BatchFull));
                }
                if let Some(buffer) = take_longer(state, longer, record_bytes) {
                    state.move_to_longer(buffer);
                }
                continue;
            }
            if let Some(blocked) = self.leave_segment(state, draft, longer)? {
                return Ok(Some(blocked));
            }
        }
    }

    /// Seals the segment, which has no space for the record, if the next segment is ready and long
    /// enough for the record. Returns the reason why the record must wait before
    /// [`Self::make_room`] can continue.
    ///
    /// With a long record, continues in the next segment at once: while another thread writes the
    /// sealed batch, short records could otherwise fill that segment, too.
    fn leave_segment(
        &self,
        state: &mut Locked<'_>,
        draft: &Draft<'_>,
        longer: &mut Option<AlignedBuf>,
    ) -> Result<Option<Blocked>> {
        let needed = bytes_for_record(draft.payload.bytes);
        match &state.next {
            // The segment is sealed even if the next segment belongs to the reserve (segments kept
            // for deletions and compaction on a full disk) and this record may not use it.
            // Otherwise no further segment would be created until another record uses the reserve.
            Next::Ready(next) if next.segment.holds_first(draft.payload.bytes) => {
                let record_bytes = draft.record_bytes();
                if !state.buffers.is_long(record_bytes) {
                    state.filling.push_empty(Kind::Seal);
                } else if state.unwritten.is_some() {
                    return Ok(Some(Blocked::BatchFull));
                } else if let Some(buffer) = take_longer(state, longer, record_bytes) {
                    self.shared.continue_in_next(state, buffer);
                }
            }
            // The segment is not sealed before a long enough segment exists: on a full disk, other
            // records may use the rest of the segment and the next one.
            next if matches!(next, Next::Ready(_)) || needed > self.pool.bytes_min() => {
                if let Some(error) = state.take_refusal(draft.priority, needed) {
                    return Err(error);
                }
                state.check_pause()?;
                return Ok(Some(Blocked::LongerSegment(needed)));
            }
            // The failed creation was for records that may use less disk space than this record, so
            // the creation is tried again.
            Next::Failed(_, tried) if *tried < draft.priority => state.next = Next::Missing,
            Next::Failed(..) => {
                if let Next::Failed(error, _) = std::mem::replace(&mut state.next, Next::Missing) {
                    return Err(error);
                }
            }
            _ => {
                state.check_pause()?;
                return Ok(Some(Blocked::NextSegment));
            }
        }
        Ok(None)
    }

    /// Appends the record to the filling batch, into which it must fit, and returns its ticket.
    ///
    /// If the space left in the segment is too short for a second record of this length and shorter
    /// than a 64th of the segment, and the next segment is ready, the seal is appended to the same
    /// batch. Switching segments then needs no separate sync.
    fn append_to_batch(&self, state: &mut State, draft: &Draft<'_>) -> Ticket {
        debug_assert!(!state.is_paused && !state.filling.sealed && state.latched.is_none());
        debug_assert!(self.pool.may_use(&state.filling.tail.segment, draft.priority));
        let segment = Arc::clone(&state.filling.tail.segment);
        let lsn = state.filling.push(draft.kind, &draft.payload);
        // The length was compared with the maximum, which is shorter than a segment.
        let payload_bytes = u32::try_from(draft.payload.bytes).unwrap_or(u32::MAX);
        let at = Position { lsn, payload_bytes };
        let left = segment.records_end().saturating_sub(state.filling.offset());
        let little = draft.record_bytes().min(segment.bytes as usize / 64);
        let is_last = (left as usize) < little && draft.kind == Kind::Data;
        if is_last && matches!(&state.next, Next::Ready(tail) if !tail.segment.is_reserve) {
            state.filling.push_empty(Kind::Seal);
        }
        if state.gather_target.is_some_and(|target| state.filling.records >= target)
            || state.filling.sealed
        {
            self.shared.end_gathering(state);
        }
        if state.filling.offset() >= state.prepare_at {
            self.shared.prepare.notify_one();
        }
        Ticket::new(Arc::clone(&self.shared), at, state.generation)
    }
}

/// Takes the buffer for a long record of `record_bytes` bytes. If it does not exist, allocates it
/// with the state unlocked, and returns `None`: the caller must check the state again.
fn take_longer(
    state: &mut Locked<'_>,
    longer: &mut Option<AlignedBuf>,
    record_bytes: usize,
) -> Option<AlignedBuf> {
    let bytes = state.buffers.bytes_for(record_bytes);
    let taken = longer.take().filter(|buffer| buffer.len() >= bytes);
    if taken.is_none() {
        *longer = Some(state.unlocked(|| long_buffer(bytes, record_bytes)));
    }
    taken
}
