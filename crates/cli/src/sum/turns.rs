//! Sums in the order of their files, whatever order they are made in. Pure.

use std::collections::BTreeMap;

use haul_bulk_read::Error;
use haul_bulk_read::digest::Digest;

/// What came of a file.
pub(super) type Outcome = Result<Digest, Error>;

/// How long the sum of a file is that failed.
const FAILED: u8 = u8::MAX;

/// Outcomes that came before their turn: the bytes of a sum for each file. Memory that nothing is
/// put into is not taken.
#[derive(Debug)]
pub(super) struct Turns {
    next: usize,
    /// How long the longest sum is.
    sum_bytes: usize,
    sums: Vec<u8>,
    /// How long each sum is; 0 for what has not come.
    lengths: Vec<u8>,
    /// Few fail, so why is kept apart.
    errors: BTreeMap<usize, Error>,
}

impl Turns {
    /// Room for the sums of `count` files, of up to `sum_bytes` each.
    pub(super) fn new(count: usize, sum_bytes: usize) -> Self {
        let (sums, lengths) = (vec![0; count * sum_bytes], vec![0; count]);
        Self { next: 0, sum_bytes, sums, lengths, errors: BTreeMap::new() }
    }

    /// Whose turn it is.
    pub(super) fn next(&self) -> usize {
        self.next
    }

    /// The next one had its turn.
    pub(super) fn pass(&mut self) {
        self.next += 1;
    }

    /// Keeps an outcome until its turn.
    pub(super) fn keep(&mut self, index: usize, outcome: Outcome) {
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

    /// The outcome whose turn it is, if it was kept.
    pub(super) fn take(&mut self) -> Option<Outcome> {
        match *self.lengths.get(self.next)? {
            0 => None,
            FAILED => self.errors.remove(&self.next).map(Err),
            length => {
                let sum = &self.sums[self.next * self.sum_bytes..][..length.into()];
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
        if index % 7 == 3 { Err(Error::NotAFile { path }) } else { Ok(kind.of(&[1])) }
    }

    #[test]
    fn all_come_out_in_order_whatever_order_they_came_in() {
        for step in [1, 3, 7, 99] {
            let mut turns = Turns::new(100, 64);
            let mut told = Vec::new();
            for index in (0..100).map(|number| number * step % 100) {
                turns.keep(index, outcome(index));
                while let Some(outcome) = turns.take() {
                    told.push(format!("{outcome:?}"));
                    turns.pass();
                }
                assert_eq!(turns.next(), told.len());
            }
            let expected: Vec<_> = (0..100).map(|index| format!("{:?}", outcome(index))).collect();
            assert_eq!(told, expected, "{step}");
        }
    }
}
