//! Computes the lengths of new segments. Performs no I/O.
//!
//! A log's first segment may be shorter than the later ones. A new segment is then twice as long as
//! the longest one before, up to the maximum length, so that a log with few records takes little
//! space. The reserve's files are at least as long as the longest segment: one file can hold the
//! records that compaction keeps from any segment.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::options::Options;

/// A log's segment lengths, in bytes.
#[derive(Debug)]
pub(crate) struct Lengths {
    first: u32,
    max: u32,
    /// The maximum number of reserved segments.
    reserved_max: u32,
    /// The longest segment's length, but at most `max`; 0 if the log has no segment. It never
    /// decreases while the log is open.
    longest: AtomicU32,
}

impl Lengths {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            first: options.first_segment_bytes(),
            max: options.segment_bytes,
            reserved_max: options.compaction_segments,
            longest: AtomicU32::new(0),
        }
    }

    /// Updates the longest segment's length after a segment was created or found.
    pub(crate) fn add(&self, bytes: u32) {
        self.longest.fetch_max(bytes.min(self.max), Ordering::Relaxed);
    }

    /// Returns the length of a whole segment, which is the longest segment's length. A spare file
    /// is reserved or recycled only if it has at least this length.
    pub(crate) fn whole(&self) -> u32 {
        self.longest.load(Ordering::Relaxed).max(self.first)
    }

    /// `true` if a spare file of this length may have been a whole segment before the log created
    /// longer ones.
    pub(crate) fn is_outgrown(&self, bytes: u32) -> bool {
        (self.first..self.whole()).contains(&bytes)
    }

    /// `true` if new segments may be longer than the existing ones.
    pub(crate) fn may_grow(&self) -> bool {
        self.whole() < self.max
    }

    /// Returns the next segment's length for ordinary records, with `free` free bytes on the disk
    /// (`None` if unlimited).
    ///
    /// The length grows only if the segment, the next one and a reserve of the new length would
    /// take at most half of the free space. Growing therefore never makes a disk full.
    pub(crate) fn next(&self, free: Option<u64>) -> u32 {
        let longest = self.longest.load(Ordering::Relaxed);
        if longest == 0 {
            return self.first;
        }
        let grown = longest.saturating_mul(2).clamp(self.first, self.max);
        let files = 2 + u64::from(self.reserved_max);
        let is_possible = free.is_none_or(|free| free / 2 >= files * u64::from(grown));
        if is_possible { grown } else { self.whole() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u32 = 1 << 20;

    fn lengths(first: Option<u32>) -> Lengths {
        Lengths::new(&Options {
            first_segment_bytes: first,
            segment_bytes: 10 * MIB,
            buffer_bytes: 64 << 10,
            compaction_segments: 2,
            ..Options::default()
        })
    }

    #[test]
    fn each_segment_is_twice_as_long_up_to_the_maximum() {
        let lengths = lengths(Some(MIB));
        let mut created = Vec::new();
        for _ in 0..6 {
            created.push(lengths.next(None) / MIB);
            lengths.add(lengths.next(None));
            assert_eq!(lengths.whole() / MIB, created[created.len() - 1]);
        }
        assert_eq!(created, [1, 2, 4, 8, 10, 10]);
        assert!(!lengths.may_grow() && lengths.is_outgrown(8 * MIB) && !lengths.is_outgrown(10));
    }

    #[test]
    fn all_segments_have_the_maximum_length_by_default() {
        let lengths = lengths(None);
        assert_eq!((lengths.next(Some(0)), lengths.whole()), (10 * MIB, 10 * MIB));
        // A log's segments when it was opened with a shorter maximum, and with a longer one.
        for bytes in [MIB, 10 * MIB, 40 * MIB] {
            lengths.add(bytes);
            assert_eq!((lengths.next(Some(0)), lengths.whole()), (10 * MIB, 10 * MIB));
        }
        assert!(!lengths.may_grow() && !lengths.is_outgrown(MIB));
    }

    #[test]
    fn length_grows_only_with_plenty_of_free_space() {
        let lengths = lengths(Some(MIB));
        assert_eq!(lengths.next(Some(0)), MIB, "the first segment");
        lengths.add(2 * MIB);
        let free = |mib: u64| Some(mib << 20);
        assert_eq!([31, 32].map(|mib| lengths.next(free(mib))), [2 * MIB, 4 * MIB]);
    }
}
