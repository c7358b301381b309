//! Reorders digests into the order of their jobs.

use std::collections::BTreeMap;

use haul_bulk_read::Error;
use haul_bulk_read::digest::Digest;

/// The digest of one file, or the reason why it could not be read.
pub type Outcome = Result<Digest, Error>;

/// The value in `lengths` for a file that could not be read.
const FAILED: u8 = u8::MAX;

/// A buffer for the outcomes of jobs that finish before an earlier job, with one fixed-size slot
/// per job. The slots are allocated zeroed, so the kernel provides no memory for unused slots.
#[derive(Debug)]
pub(crate) struct ReorderBuffer {
    next_index: usize,
    /// The length of the longest digest, in bytes.
    sum_bytes: usize,
    sums: Vec<u8>,
    /// The length of each digest in bytes; 0 if the buffer has no outcome, `FAILED` for an error.
    lengths: Vec<u8>,
    /// The errors by index, stored separately because they are rare.
    errors: BTreeMap<usize, Error>,
}

impl ReorderBuffer {
    /// Creates a buffer for `count` digests of up to `sum_bytes` bytes.
    pub(crate) fn new(count: usize, sum_bytes: usize) -> Self {
        let (sums, lengths) = (vec![0; count * sum_bytes], vec![0; count]);
        Self { next_index: 0, sum_bytes, sums, lengths, errors: BTreeMap::new() }
    }

    /// Returns the index of the next outcome to report.
    pub(crate) fn next_index(&self) -> usize {
        self.next_index
    }

    /// Advances `next_index` by one, after an outcome was reported.
    pub(crate) fn advance(&mut self) {
        self.next_index += 1;
    }

    /// Inserts the outcome of the job `index`. `pop` returns it after those of all earlier jobs.
    pub(crate) fn insert(&mut self, index: usize, outcome: Outcome) {
        self.lengths[index] = match outcome {
            Ok(sum) => {
                let sum = sum.as_bytes();
                self.sums[index * self.sum_bytes..][..sum.len()].copy_from_slice(sum);
                u8::try_from(sum.len()).unwrap_or(FAILED)
            }
            Err(error) => {
                self.errors.insert(index, error);
                FAILED
            }
        };
    }

    /// Removes and returns the next outcome if the buffer contains it.
    pub(crate) fn pop(&mut self) -> Option<Outcome> {
        match *self.lengths.get(self.next_index)? {
            0 => None,
            FAILED => self.errors.remove(&self.next_index).map(Err),
            length => {
                let sum = &self.sums[self.next_index * self.sum_bytes..][..length.into()];
                Digest::from_bytes(sum).map(Ok)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use haul_bulk_read::digest::HashKind;

    use super::*;

    fn outcome(index: usize) -> Outcome {
        let kind = HashKind::ALL[index % HashKind::ALL.len()];
        let path = format!("{index}").into();
        if index % 7 == 3 { Err(Error::NotRegularFile { path }) } else { Ok(kind.of(&[1])) }
    }

    #[test]
    fn outcomes_come_out_in_order() {
        for step in [1, 3, 7, 99] {
            let mut reorder = ReorderBuffer::new(100, 64);
            let mut popped = Vec::new();
            for index in (0..100).map(|number| number * step % 100) {
                reorder.insert(index, outcome(index));
                while let Some(outcome) = reorder.pop() {
                    popped.push(format!("{outcome:?}"));
                    reorder.advance();
                }
                assert_eq!(reorder.next_index(), popped.len());
            }
            let expected: Vec<_> = (0..100).map(|index| format!("{:?}", outcome(index))).collect();
            assert_eq!(popped, expected, "{step}");
        }
    }
}
