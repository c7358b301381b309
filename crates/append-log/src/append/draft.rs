//! Prepares a record to be appended, before the lock of the log is taken.

use crate::append::batch::Stored;
use crate::error::{Error, Result};
use crate::format::{Kind, compression};
use crate::lsn::{Lsn, Position};
use crate::options::Compression;
use crate::segments::Segment;
use crate::segments::reserve::Room;

/// A record to be appended. Its payload is compressed, and its checksum computed, before the lock is
/// taken, because this takes the most time. The header, which is encoded under the lock, has its own
/// checksum.
pub(super) struct Draft<'a> {
    pub(super) kind: Kind,
    pub(super) room: Room,
    /// The payload of the caller, in parts, and the total length of these.
    payload: &'a [&'a [u8]],
    bytes: usize,
    /// The checksum of the payload, unless it is compressed.
    checksum: Option<u32>,
    /// The compressed payload, and its checksum.
    compressed: Option<(Vec<u8>, u32)>,
}

impl<'a> Draft<'a> {
    pub(super) fn data(
        payload: &'a [&'a [u8]],
        room: Room,
        compression: Compression,
        payload_bytes_max: u32,
    ) -> Result<Self> {
        let bytes: usize = payload.iter().map(|part| part.len()).sum();
        if bytes > payload_bytes_max as usize {
            return Err(Error::TooLong {
                bytes: bytes as u64,
                bytes_max: payload_bytes_max.into(),
            });
        }
        let compressed = match compression {
            Compression::None => None,
            Compression::Lz4 => compression::compress(payload),
        };
        let compressed = compressed.map(|bytes| {
            let checksum = haul_crc::crc32c(&bytes);
            (bytes, checksum)
        });
        let checksum = compressed.is_none().then(|| checksum_of(payload));
        Ok(Self { kind: Kind::Data, room, payload, bytes, checksum, compressed })
    }

    pub(super) fn close() -> Self {
        let (kind, room) = (Kind::Close, Room::Reserve);
        Self { kind, room, payload: &[], bytes: 0, checksum: Some(0), compressed: None }
    }

    /// Returns the length of the payload as it is stored without compression.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the length of the payload as it is stored in this segment.
    pub(super) fn stored_bytes(&self, segment: &Segment) -> usize {
        match &self.compressed {
            Some((bytes, _)) if segment.has_compression => bytes.len(),
            _ => self.bytes,
        }
    }

    /// Calls `push` with the payload as it is stored in this segment: a segment of an older format
    /// version has no compressed records. Returns the position of the record.
    pub(super) fn store(
        &self,
        segment: &Segment,
        push: impl FnOnce(Kind, &Stored<'_>) -> Lsn,
    ) -> Position {
        let lsn = match &self.compressed {
            Some((bytes, checksum)) if segment.has_compression => {
                let (parts, checksum): (&[&[u8]], _) = (&[bytes], *checksum);
                push(
                    self.kind,
                    &Stored { parts, bytes: bytes.len(), checksum, is_compressed: true },
                )
            }
            _ => {
                let (parts, bytes) = (self.payload, self.bytes);
                let checksum = self.checksum.unwrap_or_else(|| checksum_of(parts));
                push(self.kind, &Stored { parts, bytes, checksum, is_compressed: false })
            }
        };
        // The length was compared with the maximum, which is shorter than a segment.
        Position { lsn, payload_bytes: u32::try_from(self.bytes).unwrap_or(u32::MAX) }
    }
}

fn checksum_of(parts: &[&[u8]]) -> u32 {
    parts.iter().fold(0, |sum, part| haul_crc::crc32c_append(sum, part))
}
