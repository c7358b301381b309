//! Decides from batch lengths how the next segment is prepared and written. Performs no I/O.
//!
//! The first write to a block that was only reserved changes file system metadata, so that the next
//! sync commits the file system's journal: about one more sync for each batch. Writing zeros to the
//! block first avoids this commit, but sends every byte to the device twice. Zeros therefore pay
//! for small batches only. Large batches also bypass the page cache, because copying them into it
//! takes longer than the system calls of a direct write.

/// The mean length in bytes at or above which batches are large. Measured with `haul bench
/// small-files`; see `docs/small-files.md`.
const LARGE_BATCH_BYTES_MIN: u64 = 288 << 10;

/// The mean length in bytes at or above which batches are still large if the previous segment's
/// batches were. With two limits, a load between them does not alternate between the two methods.
const STILL_LARGE_BATCH_BYTES_MIN: u64 = 192 << 10;

/// The number of batches written to the current segment, and their total length.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BatchSizes {
    batches: u64,
    bytes: u64,
    /// `true` if the previous segment's batches were large.
    were_large: bool,
}

impl BatchSizes {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.batches += 1;
        self.bytes += bytes;
    }

    /// `true` if the batches are large on average. The next segment's batches are expected to be as
    /// long as the current segment's.
    pub(crate) fn are_large(self) -> bool {
        let least =
            if self.were_large { STILL_LARGE_BATCH_BYTES_MIN } else { LARGE_BATCH_BYTES_MIN };
        let mean = self.bytes.checked_div(self.batches);
        mean.map_or(self.were_large, |mean| mean >= least)
    }

    /// Returns the next segment's counters, before its first batch.
    pub(crate) fn next_segment(self) -> Self {
        Self { batches: 0, bytes: 0, were_large: self.are_large() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_large_by_their_mean_length() {
        let are_large = |batches: &[u64]| {
            let mut sizes = BatchSizes::default();
            batches.iter().for_each(|bytes| sizes.add(*bytes));
            sizes.are_large()
        };
        let (small, large) = (4 << 10, 4 << 20);
        assert!(!are_large(&[]));
        assert!(!are_large(&[small, small]));
        assert!(!are_large(&[LARGE_BATCH_BYTES_MIN - 1]));
        assert!(are_large(&[LARGE_BATCH_BYTES_MIN]));
        assert!(are_large(&[large, small, small]));
        assert!(!are_large(&[vec![small; 100], vec![large]].concat()));
    }

    #[test]
    fn batches_stay_large_between_the_limits() {
        let between = STILL_LARGE_BATCH_BYTES_MIN;
        let segment = |before: BatchSizes, batch: u64| {
            let mut sizes = before.next_segment();
            assert_eq!(sizes.are_large(), before.are_large(), "no batch yet");
            sizes.add(batch);
            sizes
        };
        let small = segment(BatchSizes::default(), between);
        assert!(!small.are_large());
        let large = segment(small, LARGE_BATCH_BYTES_MIN);
        assert!(large.are_large());
        let still_large = segment(large, between);
        assert!(still_large.are_large());
        assert!(!segment(still_large, between - 1).are_large());
    }
}
