//! Appending: a record goes behind the others in the filling buffer, and on to the next segment
//! where this one is full.

pub(crate) mod batch;
pub(crate) mod commit;
pub(crate) mod gather;
pub(crate) mod state;
pub(crate) mod ticket;
pub(crate) mod writer;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::MutexGuard;

use crate::append::state::{Next, State};
use crate::append::ticket::Ticket;
use crate::error::{Error, Result};
use crate::format::{Kind, record_bytes};
use crate::log::Log;

/// Which space a record may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// All but the reserve.
    Ordinary,
    /// The reserve too: for records that help a full disk, such as deletions.
    Reserve,
}

/// A record about to be appended.
struct Draft<'a> {
    kind: Kind,
    payload: &'a [&'a [u8]],
    bytes: usize,
    checksum: u32,
    room: Room,
}

/// What stands in the way of a record.
enum Blocked {
    /// Both buffers are full, or a truncation is under way.
    Room,
    /// The next segment is not ready.
    NextSegment,
}

impl Log {
    /// Appends a record made of `payload`'s parts. Blocks while both buffers are full: that
    /// bounds the bytes in flight.
    ///
    /// # Errors
    /// [`Error::TooLong`]; [`Error::Full`] when the segment is full and there is no space for
    /// another, [`Error::Disk`] when another cannot be made for some other reason;
    /// [`Error::Latched`] after a failed write or sync. Nothing was appended then.
    ///
    /// # Durability
    /// None until the ticket was waited for.
    pub fn append(&self, payload: &[&[u8]], room: Room) -> Result<Ticket> {
        let ticket = self.push(&self.draft(payload, room)?)?;
        self.shared.counters.record();
        Ok(ticket)
    }

    /// As [`Log::append`], for futures: while both buffers are full it is pending instead of
    /// blocking. It waits for no runtime's clock or poller. Dropped while pending, nothing was
    /// appended.
    ///
    /// # Errors
    /// As [`Log::append`].
    ///
    /// # Durability
    /// None until the ticket was waited for.
    pub async fn append_async(&self, payload: &[&[u8]], room: Room) -> Result<Ticket> {
        let draft = self.draft(payload, room)?;
        let ticket = poll_fn(|context| self.poll_push(&draft, context)).await?;
        self.shared.counters.record();
        Ok(ticket)
    }

    fn draft<'a>(&self, payload: &'a [&'a [u8]], room: Room) -> Result<Draft<'a>> {
        let bytes: usize = payload.iter().map(|part| part.len()).sum();
        let bytes_max = self.options.payload_bytes_max();
        if bytes > bytes_max as usize {
            return Err(Error::TooLong { bytes: bytes as u64, bytes_max: bytes_max.into() });
        }
        // Summed before the lock is taken; the header is added to it under the lock.
        let checksum = payload.iter().fold(0, |sum, part| crc32c::crc32c_append(sum, part));
        Ok(Draft { kind: Kind::Data, payload, bytes, checksum, room })
    }

    /// The mark of a log that is closed.
    pub(crate) fn push_close(&self) -> Result<Ticket> {
        let room = Room::Reserve;
        self.push(&Draft { kind: Kind::Close, payload: &[], bytes: 0, checksum: 0, room })
    }

    fn push(&self, draft: &Draft<'_>) -> Result<Ticket> {
        let mut state = self.shared.state.lock();
        while let Some(blocked) = self.make_room(&mut state, draft)? {
            match blocked {
                Blocked::Room => self.shared.room.wait(&mut state),
                Blocked::NextSegment => {
                    let with_reserve = usize::from(draft.room == Room::Reserve);
                    state.waiting_for_next += 1;
                    state.waiting_with_reserve += with_reserve;
                    self.shared.prepare.notify_one();
                    self.shared.room.wait(&mut state);
                    state.waiting_for_next -= 1;
                    state.waiting_with_reserve -= with_reserve;
                }
            }
        }
        Ok(self.put(&mut state, draft))
    }

    fn poll_push(&self, draft: &Draft<'_>, context: &mut Context<'_>) -> Poll<Result<Ticket>> {
        let mut state = self.shared.state.lock();
        match self.make_room(&mut state, draft) {
            Ok(None) => Poll::Ready(Ok(self.put(&mut state, draft))),
            Ok(Some(blocked)) => {
                if let Blocked::NextSegment = blocked {
                    // Whoever polls does not stay to wait; the request stays until it is heard.
                    state.ask_for_next(draft.room == Room::Reserve);
                    self.shared.prepare.notify_one();
                }
                state.wake_for_room(context.waker());
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// Goes on to the next segment where this one is full. `None` when the record fits behind
    /// those there.
    fn make_room(
        &self,
        state: &mut MutexGuard<'_, State>,
        draft: &Draft<'_>,
    ) -> Result<Option<Blocked>> {
        let record_bytes = record_bytes(draft.bytes);
        loop {
            state.check_latch()?;
            let filling = &state.filling;
            if state.is_paused {
                return Ok(Some(Blocked::Room));
            }
            let segment = &filling.tail.segment;
            let may_use = draft.room == Room::Reserve || !segment.is_reserve;
            if filling.sealed {
                self.shared.want_commit(state);
                return Ok(Some(Blocked::Room));
            }
            if may_use && filling.offset() as usize + record_bytes <= segment.records_end() as usize
            {
                if filling.fits(record_bytes) {
                    return Ok(None);
                }
                self.shared.want_commit(state);
                return Ok(Some(Blocked::Room));
            }
            match &state.next {
                // Also where it is the reserve and the record may not use that: nobody else might
                // ever come for it, and the segment behind it may be made by now.
                Next::Ready(_) => {
                    state.filling.push(Kind::Seal, &[], 0);
                }
                Next::Missing => return Ok(Some(Blocked::NextSegment)),
                Next::Failed(_) => {
                    if let Next::Failed(error) = std::mem::replace(&mut state.next, Next::Missing) {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Puts the record behind the others; there is room.
    ///
    /// Where no second one like it would fit into the segment, the seal goes along with it: so
    /// going on to the next segment costs no sync of its own.
    fn put(&self, state: &mut State, draft: &Draft<'_>) -> Ticket {
        let at = state.filling.push(draft.kind, draft.payload, draft.checksum);
        let segment = &state.filling.tail.segment;
        let left = segment.records_end().saturating_sub(state.filling.offset());
        let little = record_bytes(draft.bytes).min(segment.bytes as usize / 64);
        let is_last = (left as usize) < little && draft.kind == Kind::Data;
        if is_last && matches!(&state.next, Next::Ready(tail) if !tail.segment.is_reserve) {
            state.filling.push(Kind::Seal, &[], 0);
        }
        if state.filling.offset() >= state.prepare_at {
            self.shared.prepare.notify_one();
        }
        Ticket::new(Arc::clone(&self.shared), at, state.generation)
    }
}
