//! Defines log sequence numbers, which order a log's records and locate each record in a file.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// A log sequence number (LSN): the upper 32 bits are the segment number, the lower 32 bits the
/// record's offset in the segment's file. Later records have greater LSNs, and an acknowledged
/// record's LSN is never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lsn(pub u64);

impl Position {
    /// Returns a record's position, given its payload.
    pub(crate) fn of(lsn: Lsn, payload: &[u8]) -> Self {
        Self { lsn, payload_bytes: u32::try_from(payload.len()).unwrap_or(u32::MAX) }
    }
}

impl Lsn {
    /// Returns the LSN for the record at `offset` in `segment`.
    #[must_use]
    pub const fn new(segment: u32, offset: u32) -> Self {
        Self((segment as u64) << 32 | offset as u64)
    }

    /// Returns the segment number.
    #[must_use]
    pub const fn segment(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Returns the offset in the segment's file, in bytes.
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

/// Parses the output of `Display`.
impl FromStr for Lsn {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let number = |digits: &str| digits.parse().ok();
        let parsed = text
            .split_once(':')
            .and_then(|(segment, offset)| Some(Self::new(number(segment)?, number(offset)?)));
        parsed.ok_or(Error::Invalid("write an LSN as SEGMENT:OFFSET, such as 3:4096"))
    }
}

/// A record's position and length. Because the length is known, [`crate::Log::read`] reads the
/// record with one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The record's LSN.
    pub lsn: Lsn,
    /// The payload length in bytes.
    pub payload_bytes: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lsns_round_trip_as_text() {
        for lsn in [Lsn(0), Lsn::new(3, 4096), Lsn(u64::MAX)] {
            assert_eq!(lsn.to_string().parse::<Lsn>().unwrap(), lsn);
        }
        for text in ["", "3", "3:", ":8", "3:-8", "4294967296:0", "3:8:1", "a:b"] {
            assert!(matches!(text.parse::<Lsn>(), Err(Error::Invalid(_))), "{text}");
        }
    }
}
