//! Defines the record that [`crate::Log::read`] and [`crate::Log::read_hinted`] return.

use crate::format::RECORD_HEADER_BYTES;
use crate::lsn::Position;

/// A record that was read and verified.
#[derive(Debug, Clone)]
pub struct Record {
    at: Position,
    bytes: Vec<u8>,
}

impl Record {
    /// Wraps the bytes of the verified record at `at`, which begin with the record's header.
    pub(crate) fn new(at: Position, bytes: Vec<u8>) -> Self {
        Self { at, bytes }
    }

    /// Returns the position of the record, with the length that its header declares.
    #[must_use]
    pub fn position(&self) -> Position {
        self.at
    }

    /// Returns the payload of the record.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.bytes[RECORD_HEADER_BYTES..]
    }

    /// Returns the buffer into which the record was read, and the offset of the payload in this
    /// buffer. Nothing is copied.
    #[must_use]
    pub fn into_bytes(self) -> (Vec<u8>, usize) {
        (self.bytes, RECORD_HEADER_BYTES)
    }
}
