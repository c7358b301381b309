//! Encodes and decodes segment headers and record headers, as described with figures in
//! `FORMAT.md`.
//!
//! All numbers are little-endian. Checksums are CRC-32C (Castagnoli).

mod record_header;
mod segment_header;

use crate::lsn::Position;

pub(crate) use record_header::{Kind, RecordHeader};
pub(crate) use segment_header::{HeaderError, SegmentHeader};

/// The format version. A segment with another version is rejected.
pub(crate) const VERSION: u32 = 1;

/// A header page's length, in bytes. Records lie between the header pages at the beginning and the
/// end of the file.
pub(crate) const HEADER_BYTES: u32 = 4096;

/// The maximum segment length, 2 GiB. With this limit no offset calculation overflows 32 bits.
pub(crate) const BYTES_MAX: u32 = 2 << 30;

/// The maximum payload length, 256 MiB.
pub(crate) const PAYLOAD_BYTES_MAX: u32 = 256 << 20;

/// The record header's length in bytes.
pub const RECORD_HEADER_BYTES: usize = 32;

/// A seal's length in bytes. A seal is the record without a payload that ends a segment. When a log
/// is opened, [`crate::Log::synced`] is before its last segment's seal.
pub const SEAL_BYTES: u32 = 32;
const _: () = assert!(SEAL_BYTES as usize == record_bytes(0));

/// The alignment of records in a segment, in bytes.
pub(crate) const RECORD_ALIGN: usize = 8;

/// A random value that distinguishes a segment's records from stale records of earlier segments in
/// the same file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Salt {
    /// A random number that changes each time the file is used for a segment. Every record header's
    /// checksum covers it, so that stale records do not verify.
    pub(crate) nonce: u64,
    /// The nonce's low three bytes, stored in every record. An attacker who chooses payloads could
    /// match a 32-bit checksum somewhere among a file's millions of positions, but not checksum and
    /// tag, 56 bits together.
    tag: [u8; 3],
}

impl Salt {
    /// Creates the salt for a segment with this nonce.
    pub(crate) fn new(nonce: u64) -> Self {
        let [a, b, c, ..] = nonce.to_le_bytes();
        Self { nonce, tag: [a, b, c] }
    }
}

/// Returns the length in bytes that a record with a payload of `payload_bytes` bytes takes in a
/// segment, padding included.
pub(crate) const fn record_bytes(payload_bytes: usize) -> usize {
    (RECORD_HEADER_BYTES + payload_bytes).next_multiple_of(RECORD_ALIGN)
}

/// Returns the length in bytes of the longest payload whose record fits into `pages` pages of 4
/// KiB. A lone writer whose payloads are that long, or up to 512 bytes shorter, writes each record
/// as `pages` pages. A payload of a whole page, 4,096 bytes, takes at least two: its header needs
/// space, too.
#[must_use]
pub const fn payload_bytes_in_pages(pages: u32) -> u32 {
    (pages * HEADER_BYTES).saturating_sub(SEAL_BYTES)
}

/// Returns the length in bytes that the record at `at` takes in its segment. The next record
/// follows it directly, unless the log writes its own record between them.
#[must_use]
pub fn stored_bytes(at: Position) -> u32 {
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
