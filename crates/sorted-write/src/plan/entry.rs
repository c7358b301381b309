//! Defines the writes to plan, and the pieces of writes that no newer write overwrites.

/// A write to plan. The structure has 16 bytes, so that a million writes can be sorted within the
/// CPU cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The offset in the file, in bytes.
    pub offset: u64,
    /// The write's sequence number. Where writes overlap, the bytes of the write with the greatest
    /// number are kept.
    pub number: u32,
    /// The length in bytes, at least 1.
    pub bytes: u32,
}

impl Entry {
    /// Returns the file offset after the last byte.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes.into())
    }
}

/// A part of a write that no newer write covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// The offset in the file, in bytes.
    pub offset: u64,
    /// The length in bytes.
    pub bytes: u32,
    /// The sequence number of the write that contains the piece.
    pub number: u32,
    /// The piece's offset within this write.
    pub from: u32,
}

impl Piece {
    /// Returns the file offset after the last byte.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes.into())
    }

    /// Splits the piece at the file offset `at`, which lies within it.
    pub(super) fn split(self, at: u64) -> (Self, Self) {
        debug_assert!(self.offset < at && at < self.end());
        let front = u32::try_from(at - self.offset).unwrap_or(self.bytes).min(self.bytes);
        let back = Self {
            offset: at,
            bytes: self.bytes - front,
            from: self.from + front,
            number: self.number,
        };
        (Self { bytes: front, ..self }, back)
    }
}
