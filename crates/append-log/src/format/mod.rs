//! Encodes and decodes the headers of segments and records, as described with figures in
//! `FORMAT.md`.
//!
//! All numbers are little-endian. Checksums are CRC-32C (Castagnoli).

mod record_header;
mod segment_header;

use crate::lsn::Position;

pub(crate) use record_header::{Kind, RecordHeader};
pub(crate) use segment_header::{NotAHeader, SegmentHeader};

/// The format version of all segments. A segment with another version is rejected.
pub(crate) const VERSION: u32 = 1;

/// The length of a header page, in bytes. Records lie between the header pages at the beginning and
/// the end of the file.
pub(crate) const HEADER_BYTES: u32 = 4096;

/// The maximum length of a segment, 2 GiB. With this limit no offset calculation overflows 32 bits.
pub(crate) const BYTES_MAX: u32 = 2 << 30;

/// The maximum length of a payload, 256 MiB.
pub(crate) const PAYLOAD_BYTES_MAX: u32 = 256 << 20;

/// The length of a record header in bytes.
pub const RECORD_HEADER_BYTES: usize = 32;

/// The length in bytes of a seal, the record without a payload that ends a segment.
/// [`crate::Log::synced`] of a log that was opened is before the seal of its last segment.
pub const SEAL_BYTES: u32 = 32;
const _: () = assert!(SEAL_BYTES as usize == record_bytes(0));

/// The alignment of records in a segment, in bytes.
pub(crate) const RECORD_ALIGN: usize = 8;

/// A random value that distinguishes the records of a segment from stale records of earlier
/// segments in the same file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Salt {
    /// A random number that changes each time the file is used for a segment. It is part of the
    /// checksum of every record header, so that stale records do not verify.
    pub(crate) nonce: u64,
    /// The low three bytes of the nonce, stored in every record. An attacker who chooses payloads
    /// could match a checksum of 32 bits at one of the millions of positions in a file, but not
    /// checksum and tag, 56 bits together.
    tag: [u8; 3],
}

impl Salt {
    /// Creates the salt of a segment with this nonce.
    pub(crate) fn new(nonce: u64) -> Self {
        let [a, b, c, ..] = nonce.to_le_bytes();
        Self { nonce, tag: [a, b, c] }
    }
}

/// Returns the length in bytes that a record with a payload of `payload_bytes` takes in a segment,
/// padding included.
pub(crate) const fn record_bytes(payload_bytes: usize) -> usize {
    (RECORD_HEADER_BYTES + payload_bytes).next_multiple_of(RECORD_ALIGN)
}

/// Returns the length in bytes of the longest payload whose record fits into this number of pages
/// of 4 KiB. A lone writer whose payloads are that long, or up to 512 bytes shorter, writes each
/// record as so many pages. A payload of a whole page, 4,096 bytes, takes at least two: its header
/// needs space, too.
#[must_use]
pub const fn payload_bytes_in_pages(pages: u32) -> u32 {
    (pages * HEADER_BYTES).saturating_sub(SEAL_BYTES)
}

/// Returns the length in bytes that the record at `at` takes in its segment. The next record
/// follows it directly, unless the log writes a record of its own between them.
#[must_use]
pub fn footprint(at: Position) -> u32 {
    u32::try_from(record_bytes(at.payload_bytes as usize)).unwrap_or(u32::MAX)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(four)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(eight)
}
