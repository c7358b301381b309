//! Defines the record that [`crate::Log::read`] returns.

use crate::format::RECORD_HEADER_BYTES;

/// A record that was read and verified.
#[derive(Debug, Clone)]
pub struct Record {
    bytes: Vec<u8>,
}

impl Record {
    /// Wraps the bytes of a verified record, which begin with the record's header.
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        Self { bytes }
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
