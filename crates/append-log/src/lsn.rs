//! Where a record is: its number in the order of the log and its place on the disk are one.

use std::fmt;

/// A log sequence number: the number of the segment in the upper half, the offset in its file in
/// the lower. Later records have greater ones, and none that was acknowledged is ever given
/// again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lsn(pub u64);

impl Lsn {
    /// The record at `offset` of `segment`.
    #[must_use]
    pub const fn new(segment: u32, offset: u32) -> Self {
        Self((segment as u64) << 32 | offset as u64)
    }

    /// The number of the segment.
    #[must_use]
    pub const fn segment(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The offset in the segment's file, in bytes.
    #[must_use]
    pub const fn offset(self) -> u32 {
        (self.0 & 0xffff_ffff) as u32
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.segment(), self.offset())
    }
}

/// A record's place and length: what is needed to read it with one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Where it begins.
    pub lsn: Lsn,
    /// The length of its payload in bytes.
    pub payload_bytes: u32,
}
