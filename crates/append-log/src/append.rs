//! Appending: a record goes behind the others in the filling buffer, and on to the next segment
//! where this one is full.

use std::sync::Arc;

use parking_lot::MutexGuard;

use crate::commit::{Next, Shared, State};
use crate::error::{Error, Result};
use crate::format::{Kind, record_bytes};
use crate::log::Log;
use crate::lsn::{Lsn, Position};

/// Which part of a segment a record may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// All but the reserve.
    Ordinary,
    /// The reserve too: for records that help a full disk, such as deletions.
    Reserve,
}

/// A record that is on its way to the medium.
#[derive(Debug)]
#[must_use = "the record is durable only when wait() has returned"]
pub struct Ticket<'a> {
    shared: &'a Shared,
    at: Position,
    end: Lsn,
}

impl Ticket<'_> {
    /// Waits until the record is on the medium, and tells where.
    ///
    /// # Errors
    /// [`Error::Latched`] when a write or sync failed: whether the record survives is then known
    /// only after the log is opened again.
    ///
    /// # Durability
    /// When this returns `Ok`, the record and all before it survive a power cut.
    pub fn wait(self) -> Result<Position> {
        self.shared.wait_for(self.end)?;
        Ok(self.at)
    }
}

impl Log {
    /// Appends a record made of `payload`'s parts. Blocks while both buffers are full.
    ///
    /// # Errors
    /// [`Error::TooLong`]; [`Error::Full`] when the segment is full and there is no space for
    /// another, [`Error::Disk`] when another cannot be made for some other reason;
    /// [`Error::Latched`] after a failed write or sync. Nothing was appended then.
    ///
    /// # Durability
    /// None until [`Ticket::wait`] returns.
    pub fn append(&self, payload: &[&[u8]], room: Room) -> Result<Ticket<'_>> {
        let bytes: usize = payload.iter().map(|part| part.len()).sum();
        let bytes_max = self.options.payload_bytes_max();
        if bytes > bytes_max as usize {
            return Err(Error::TooLong { bytes: bytes as u64, bytes_max: bytes_max.into() });
        }
        // Summed before the lock is taken; the header is added to it under the lock.
        let checksum = payload.iter().fold(0, |sum, part| crc32c::crc32c_append(sum, part));
        let ticket = self.push(Kind::Data, payload, checksum, room)?;
        self.shared.counters.record();
        Ok(ticket)
    }

    pub(crate) fn push(
        &self,
        kind: Kind,
        payload: &[&[u8]],
        checksum: u32,
        room: Room,
    ) -> Result<Ticket<'_>> {
        let bytes: usize = payload.iter().map(|part| part.len()).sum();
        let mut state = self.shared.state.lock();
        self.make_room(&mut state, record_bytes(bytes), room)?;
        let at = state.filling.push(kind, payload, checksum);
        let end = Lsn::new(at.lsn.segment(), state.filling.offset());
        if is_time_to_prepare(state.filling.segment.bytes, at.lsn.offset(), end.offset()) {
            self.ask_for_next(&mut state);
        }
        drop(state);
        self.shared.work.notify_one();
        Ok(Ticket { shared: &self.shared, at, end })
    }

    /// Waits until `record_bytes` fit behind the records there, going on to the next segment
    /// where this one is full.
    fn make_room(
        &self,
        state: &mut MutexGuard<'_, State>,
        record_bytes: usize,
        room: Room,
    ) -> Result<()> {
        loop {
            if let Some(source) = &state.latched {
                return Err(Error::Latched { source: Arc::clone(source) });
            }
            let filling = &state.filling;
            let reserve = if room == Room::Reserve { 0 } else { self.options.reserve_bytes };
            let limit = filling.segment.records_end().saturating_sub(reserve);
            if filling.sealed {
                self.shared.room.wait(state);
            } else if filling.offset() as usize + record_bytes <= limit as usize {
                if filling.fits(record_bytes) {
                    return Ok(());
                }
                self.shared.room.wait(state);
            } else {
                self.rotate(state)?;
            }
        }
    }

    /// One step towards the next segment: seals this one if the next is ready, else waits for it.
    fn rotate(&self, state: &mut MutexGuard<'_, State>) -> Result<()> {
        match state.next {
            Next::Ready(_) => {
                state.filling.push(Kind::Seal, &[], 0);
                self.shared.work.notify_one();
            }
            Next::Failed(_) => {
                if let Next::Failed(error) = std::mem::replace(&mut state.next, Next::Unasked) {
                    return Err(error);
                }
            }
            Next::Unasked | Next::Preparing => {
                self.ask_for_next(state);
                state.waiting_for_next += 1;
                self.shared.room.wait(state);
                state.waiting_for_next -= 1;
            }
        }
        Ok(())
    }

    fn ask_for_next(&self, state: &mut State) {
        if let Next::Unasked = state.next {
            state.next = Next::Preparing;
            self.preparer.request();
        }
    }
}

/// Whether a record from `before` to `after` is one at which the next segment is asked for: from
/// the middle of a segment on at each sixteenth of it, so that a full disk is asked now and then
/// and not by every record.
fn is_time_to_prepare(segment_bytes: u32, before: u32, after: u32) -> bool {
    let step = segment_bytes / 16;
    after >= segment_bytes / 2 && before / step < after / step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_segment_is_asked_for_at_each_sixteenth_of_the_second_half() {
        let bytes = 1 << 20;
        let asked: Vec<u32> = (0..bytes / 1024)
            .map(|kib| kib * 1024)
            .filter(|before| is_time_to_prepare(bytes, *before, before + 1024))
            .map(|before| (before + 1024) >> 10)
            .collect();
        assert_eq!(asked, [512, 576, 640, 704, 768, 832, 896, 960, 1024]);
        assert!(is_time_to_prepare(bytes, 4096, bytes - 4096), "one long record");
        assert!(!is_time_to_prepare(bytes, 4096, bytes / 2 - 8));
    }
}
