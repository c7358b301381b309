//! Appends records to a [`Log`].

use super::Log;
use crate::append::ticket::Ticket;
use crate::error::Result;
use crate::segments::reserve::SpacePriority;

impl Log {
    /// Appends a record whose payload is the parts in `payload`, concatenated. Blocks while the
    /// append buffer has no space for the record, which limits the bytes not yet written; while the
    /// segment is full and the next one is not ready; and during [`Log::truncate_back`].
    ///
    /// A record longer than [`crate::Options::buffer_bytes`] gets its own buffer, which is freed
    /// when the record is durable. It waits only until a batch with such a buffer was taken to be
    /// written, however many short records are appended. While it is copied, other appends wait. If
    /// the next segment is too short for it, which is possible while a log grows (the option
    /// `first_segment_bytes`) and on a nearly full disk, the log replaces that segment by a longer
    /// one.
    ///
    /// # Errors
    /// Returns [`crate::Error::TooLong`] if the payload is too long
    /// ([`Log::payload_bytes_max`]), [`crate::Error::Full`] if the segment has no space for the
    /// record and the disk has no space for another segment that is long enough,
    /// [`crate::Error::NoSegment`] if another segment cannot be created for another reason, and
    /// [`crate::Error::Latched`] after a failed write or sync. In each case nothing was appended.
    ///
    /// # Durability
    /// None until [`Ticket::wait`] has returned.
    pub fn append(&self, payload: &[&[u8]], priority: SpacePriority) -> Result<Ticket> {
        self.appender.append(payload, priority)
    }

    /// Appends a record like [`Log::append`] if this neither blocks nor finds the disk full.
    /// Otherwise appends nothing and returns `None`; the log then makes space for a later append
    /// in the background.
    ///
    /// # Errors
    /// Fails like [`Log::append`], but never with [`crate::Error::Full`].
    ///
    /// # Durability
    /// None until [`Ticket::wait`] has returned.
    pub fn try_append(&self, payload: &[&[u8]], priority: SpacePriority) -> Result<Option<Ticket>> {
        self.appender.try_append(payload, priority)
    }

    /// Ends the current segment, so that it can be removed once its records are no longer needed.
    /// Later records are appended to the next one. Returns `false` if nothing was ended: the
    /// segment has no records, or the next one is part of the reserve.
    ///
    /// # Errors
    /// Fails like [`Log::append`] for a record that needs another segment.
    ///
    /// # Durability
    /// The segment's records survive a power cut when this returns.
    pub fn end_segment(&self) -> Result<bool> {
        self.appender.end_segment()
    }

    /// Returns the greatest payload length that can be appended: a record must fit into a segment
    /// of [`crate::Options::segment_bytes`], and a payload has at most 256 MiB. [`Log::append`]
    /// returns [`crate::Error::TooLong`] for a longer one. Set [`crate::Options::segment_bytes`] to
    /// append longer records, or append their parts.
    #[must_use]
    pub fn payload_bytes_max(&self) -> u32 {
        self.appender.payload_bytes_max
    }
}
