//! Defines byte ranges in a file, and computes the seek distance between them.

/// A byte range in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The offset in the file, in bytes.
    pub offset: u64,
    /// The length in bytes.
    pub bytes: u64,
}

impl Extent {
    /// Returns the file offset after the last byte.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset + self.bytes
    }
}

/// Returns the total seek distance for a sequence of requests, in bytes: the sum of the distances
/// from each request's end to the next one's start, beginning at offset 0.
pub fn seek_bytes(extents: impl IntoIterator<Item = Extent>) -> u64 {
    let mut at = 0_u64;
    extents.into_iter().fold(0_u64, |travel, extent| {
        let distance = extent.offset.abs_diff(at);
        at = extent.end();
        travel.saturating_add(distance)
    })
}
