//! Tracks the next hole of a file being read. The zeros of a hole are delivered without a read. No
//! I/O.

use std::ops::Range;

use crate::read::request::FileStatus;

/// The minimum length in bytes of a hole that is not read. Reading a shorter hole costs less than
/// dividing the reads around it.
pub(in crate::read) const HOLE_BYTES_MIN: u64 = 1 << 20;

/// The first hole at or after the next byte to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::read) enum NextHole {
    /// The rest of the requested range has no long hole.
    None,
    /// There may be a hole that was not located yet.
    Unknown,
    /// The located hole.
    At(Range<u64>),
}

impl NextHole {
    /// Returns the initial state for a request for `bytes` bytes of a file. A file with a block for
    /// each of its bytes has no holes.
    pub(in crate::read) fn of(file: &FileStatus, bytes: u64) -> Self {
        let is_sparse = file.allocated_bytes.is_some_and(|allocated| allocated < file.bytes);
        if is_sparse && bytes >= HOLE_BYTES_MIN { Self::Unknown } else { Self::None }
    }

    pub(in crate::read) fn is_unknown(&self) -> bool {
        *self == Self::Unknown
    }

    /// Returns the located hole if it begins at `at`. The hole after it is then unknown.
    pub(in crate::read) fn take_at(&mut self, at: u64) -> Option<Range<u64>> {
        match self {
            Self::At(range) if range.start == at => {
                let range = range.clone();
                *self = Self::Unknown;
                Some(range)
            }
            _ => None,
        }
    }

    /// Returns the number of bytes between `from` and the located hole after it.
    pub(in crate::read) fn bytes_before(&self, from: u64) -> Option<u64> {
        match self {
            Self::At(range) => range.start.checked_sub(from).filter(|bytes| *bytes > 0),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_ranges_of_sparse_files_are_searched() {
        let file =
            |bytes, allocated_bytes| FileStatus { bytes, allocated_bytes, ..FileStatus::default() };
        let long = HOLE_BYTES_MIN;
        assert!(NextHole::of(&file(long, Some(0)), long).is_unknown());
        assert!(NextHole::of(&file(1 << 40, Some(1 << 39)), long).is_unknown());
        assert_eq!(NextHole::of(&file(long, Some(0)), long - 1), NextHole::None);
        assert_eq!(NextHole::of(&file(long, Some(long)), long), NextHole::None);
        assert_eq!(NextHole::of(&file(long, None), long), NextHole::None);
    }

    #[test]
    fn hole_is_taken_once() {
        let mut hole = NextHole::At(8..20);
        assert_eq!((hole.bytes_before(3), hole.bytes_before(8)), (Some(5), None));
        assert_eq!((hole.take_at(7), hole.take_at(8), hole.take_at(8)), (None, Some(8..20), None));
        assert!(hole.is_unknown());
    }
}
