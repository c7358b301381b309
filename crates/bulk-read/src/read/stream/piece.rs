//! Defines the parts of a file that are read, and the pieces that are delivered.

use haul_disk::AlignedBuf;

/// A part of a file to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::read) struct Part {
    pub(in crate::read) offset: u64,
    pub(in crate::read) bytes: usize,
}

/// Bytes to deliver to the consumer.
#[derive(Debug)]
pub(in crate::read) enum Piece {
    /// The first bytes of a buffer; their number follows the buffer.
    Data(AlignedBuf, usize),
    /// Zeros of a hole, which were not read.
    Zeros(u64),
}

impl Piece {
    pub(in crate::read) fn bytes(&self) -> u64 {
        match self {
            Self::Data(_, bytes) => *bytes as u64,
            Self::Zeros(bytes) => *bytes,
        }
    }

    /// Drops the bytes after the first `bytes_max` ones.
    pub(in crate::read) fn cut(self, bytes_max: u64) -> Self {
        match self {
            Self::Data(buffer, bytes) => {
                let bytes = usize::try_from(bytes_max).map_or(bytes, |max| bytes.min(max));
                Self::Data(buffer, bytes)
            }
            Self::Zeros(bytes) => Self::Zeros(bytes.min(bytes_max)),
        }
    }

    pub(in crate::read) fn into_buffer(self) -> Option<AlignedBuf> {
        match self {
            Self::Data(buffer, _) => Some(buffer),
            Self::Zeros(_) => None,
        }
    }
}
