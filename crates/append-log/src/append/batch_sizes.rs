//! Decides from the lengths of batches how the next segment is prepared and written. Performs no
//! I/O.
//!
//! The first write to a block that was only reserved changes metadata of the file system, so that
//! the next sync commits its journal: about one more sync for each batch. Writing zeros to the
//! block before avoids this commit, but sends every byte to the device twice. Zeros therefore pay
//! for small batches only. For the same reason, large batches bypass the page cache: copying them
//! into it takes longer than the system calls of a direct write.

/// The mean length in bytes from which on batches are large. Measured with `haul bench
/// small-files`; see `docs/small-files.md`.
const LARGE_BATCH_BYTES_MIN: u64 = 512 << 10;

/// The number and the total length of the batches written to the current segment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BatchSizes {
    batches: u64,
    bytes: u64,
}

impl BatchSizes {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.batches += 1;
        self.bytes += bytes;
    }

    /// `true` if the batches are large on average. The batches of the next segment are expected to
    /// be as long as those of the current one.
    pub(crate) fn are_large(self) -> bool {
        let mean = self.bytes.checked_div(self.batches);
        mean.is_some_and(|mean| mean >= LARGE_BATCH_BYTES_MIN)
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
}
