//! Prepares a record to be appended, before the log is locked.

use crate::append::batch::Payload;
use crate::error::{Error, Result};
use crate::format::{Kind, record_bytes};
use crate::segments::reserve::SpacePriority;

/// A record to be appended. Its payload checksum takes the most time, so it is computed before the
/// lock is taken. The header, which is encoded under the lock, has its own checksum.
pub(super) struct Draft<'a> {
    pub(super) kind: Kind,
    pub(super) priority: SpacePriority,
    pub(super) payload: Payload<'a>,
}

impl<'a> Draft<'a> {
    pub(super) fn data(
        parts: &'a [&'a [u8]],
        priority: SpacePriority,
        payload_bytes_max: u32,
    ) -> Result<Self> {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        if bytes > payload_bytes_max as usize {
            return Err(Error::TooLong {
                bytes: bytes as u64,
                bytes_max: payload_bytes_max.into(),
            });
        }
        let checksum = parts.iter().fold(0, |sum, part| haul_crc::crc32c_append(sum, part));
        Ok(Self { kind: Kind::Data, priority, payload: Payload { parts, bytes, checksum } })
    }

    pub(super) fn close() -> Self {
        Self { kind: Kind::Close, priority: SpacePriority::Reserve, payload: Payload::default() }
    }

    /// Returns the length in bytes that the record takes in its segment, padding included.
    pub(super) fn record_bytes(&self) -> usize {
        record_bytes(self.payload.bytes)
    }
}
