//! Defines the records that [`crate::Log::read`], [`crate::Log::read_hinted`] and
//! [`crate::Log::read_batch`] return, and the requests for the last function.

use crate::format::RECORD_HEADER_BYTES;
use crate::lsn::{Lsn, Position};

/// A record that was read and verified.
#[derive(Debug, Clone)]
pub struct Record {
    at: Position,
    bytes: Vec<u8>,
}

/// A record that [`crate::Log::read_batch`] reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordRequest {
    /// The record's LSN.
    pub lsn: Lsn,
    /// The payload bytes to read. A longer record is returned as [`BatchRecord::Front`].
    pub payload_bytes: u32,
    /// The caller's identifier for the request, which is returned with the record.
    pub tag: u64,
}

/// A record that was read by [`crate::Log::read_batch`].
#[derive(Debug, Clone)]
pub enum BatchRecord {
    /// A record that was read whole, with its checksum verified.
    Whole(Record),
    /// A record that is longer than requested: only the checksum of its header was verified, as by
    /// [`crate::Log::read_front_hinted`].
    Front {
        /// The record's position and length.
        at: Position,
        /// The first payload bytes, as many as requested.
        front: Vec<u8>,
    },
}

impl Record {
    /// Wraps the bytes of the verified record at `at`, which begin with its header.
    pub(crate) fn new(at: Position, bytes: Vec<u8>) -> Self {
        Self { at, bytes }
    }

    /// Returns the record's position, with the length that its header declares.
    #[must_use]
    pub fn position(&self) -> Position {
        self.at
    }

    /// Returns the record's payload.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.bytes[RECORD_HEADER_BYTES..]
    }

    /// Returns the buffer into which the record was read, and the payload's offset in it. Nothing
    /// is copied.
    #[must_use]
    pub fn into_bytes(self) -> (Vec<u8>, usize) {
        (self.bytes, RECORD_HEADER_BYTES)
    }
}
