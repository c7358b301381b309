//! Hashes contents for the search. The digest depends only on the bytes of a content: it is the
//! same for holes and for written zeros. Yet hashing a hole of any length takes constant time in a
//! large file.

use std::ops::Range;

use haul_bulk_read::DigestForm;
use haul_bulk_read::digest::{Digest, HashKind, Hasher};

/// The minimum length in bytes of a file in which runs of zeros are not hashed byte by byte. Files
/// of different lengths are never compared, so all copies of a content are hashed alike.
const FILE_BYTES_MIN: u64 = 1 << 30;

/// The length in bytes of the units in which such runs are counted. A unit begins at a multiple of
/// its length.
const UNIT_BYTES: u64 = 1 << 20;

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Returns the form of the digest of a file of `file_bytes` bytes.
pub(super) fn digest_form(file_bytes: u64) -> DigestForm {
    if file_bytes >= FILE_BYTES_MIN { DigestForm::ZeroRuns } else { DigestForm::Bytes }
}

/// An incremental hasher of a content.
///
/// For a file below [`FILE_BYTES_MIN`], or without a unit of zeros, the digest is that of its
/// bytes. Otherwise it is a digest of two digests: one of the bytes outside of units of zeros, and
/// one of the positions of these units. Both digests determine the content.
#[derive(Clone)]
pub(super) struct ContentHasher {
    kind: HashKind,
    hasher: Hasher,
    units: Option<Box<Units>>,
}

/// The state of a hasher that leaves out units of zeros.
#[derive(Clone)]
struct Units {
    bytes: u64,
    /// The offset of the next byte.
    at: u64,
    /// The number of bytes of the current unit that are not hashed yet, because all bytes of the
    /// unit so far are zeros; `None` after another byte.
    zeros: Option<u64>,
    /// The last run of units of zeros, not yet added to `runs`.
    run: Range<u64>,
    /// A hasher of the ends of all earlier runs.
    runs: Hasher,
}

impl ContentHasher {
    /// Creates a hasher for a file of `file_bytes` bytes.
    pub(super) fn new(kind: HashKind, file_bytes: u64) -> Self {
        let is_large = digest_form(file_bytes) == DigestForm::ZeroRuns;
        Self::with_units(kind, is_large.then_some(UNIT_BYTES))
    }

    fn with_units(kind: HashKind, unit_bytes: Option<u64>) -> Self {
        let units = unit_bytes.map(|bytes| {
            Box::new(Units { bytes, at: 0, zeros: Some(0), run: 0..0, runs: kind.hasher() })
        });
        Self { kind, hasher: kind.hasher(), units }
    }

    /// Adds the next bytes.
    pub(super) fn update(&mut self, mut bytes: &[u8]) {
        let Some(units) = &mut self.units else { return self.hasher.update(bytes) };
        while !bytes.is_empty() {
            let left = usize::try_from(units.left()).unwrap_or(usize::MAX);
            let (piece, rest) = bytes.split_at(left.min(bytes.len()));
            bytes = rest;
            match units.zeros {
                Some(zeros) if is_zero(piece) => units.zeros = Some(zeros + piece.len() as u64),
                Some(zeros) => {
                    hash_zeros(&mut self.hasher, zeros);
                    units.zeros = None;
                    self.hasher.update(piece);
                }
                None => self.hasher.update(piece),
            }
            units.advance(piece.len() as u64);
        }
    }

    /// Adds `bytes` zeros.
    pub(super) fn update_zeros(&mut self, bytes: u64) {
        let Some(units) = &mut self.units else { return hash_zeros(&mut self.hasher, bytes) };
        // The number of whole units, after the rest of the current unit.
        let first = if units.at.is_multiple_of(units.bytes) { 0 } else { units.left().min(bytes) };
        let whole = (bytes - first) / units.bytes * units.bytes;
        for step in [first, whole, bytes - first - whole] {
            match &mut units.zeros {
                Some(zeros) => *zeros += step,
                None => hash_zeros(&mut self.hasher, step),
            }
            units.advance(step);
        }
    }

    /// Returns the digest of all bytes added.
    pub(super) fn finish(mut self) -> Digest {
        let Some(mut units) = self.units else { return self.hasher.finish() };
        hash_zeros(&mut self.hasher, units.zeros.unwrap_or(0));
        if units.run.end == 0 {
            return self.hasher.finish();
        }
        units.end_run();
        let mut both = self.kind.hasher();
        both.update(b"zero runs");
        both.update(self.hasher.finish().as_bytes());
        both.update(units.runs.finish().as_bytes());
        both.finish()
    }
}

impl Units {
    /// Returns the number of bytes left in the current unit.
    fn left(&self) -> u64 {
        self.bytes - self.at % self.bytes
    }

    /// Advances by `bytes` bytes, which end within the current unit, or are whole units of zeros.
    fn advance(&mut self, bytes: u64) {
        self.at += bytes;
        if bytes == 0 || !self.at.is_multiple_of(self.bytes) {
            return;
        }
        if let Some(zeros) = self.zeros {
            let start = self.at - zeros;
            if self.run.end != start || self.run.is_empty() {
                self.end_run();
                self.run.start = start;
            }
            self.run.end = self.at;
        }
        self.zeros = Some(0);
    }

    fn end_run(&mut self) {
        if !self.run.is_empty() {
            self.runs.update(&self.run.start.to_le_bytes());
            self.runs.update(&self.run.end.to_le_bytes());
        }
    }
}

fn hash_zeros(hasher: &mut Hasher, mut bytes: u64) {
    while bytes > 0 {
        let step = usize::try_from(bytes).map_or(ZEROS.len(), |bytes| bytes.min(ZEROS.len()));
        hasher.update(&ZEROS[..step]);
        bytes -= step as u64;
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.chunks(ZEROS.len()).all(|chunk| *chunk == ZEROS[..chunk.len()])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const UNIT: u64 = 8;

    /// Hashes a content given as (byte, length) runs, in pieces of at most `piece` bytes. Zeros are
    /// added as a hole if `is_sparse`.
    fn digest(runs: &[(u8, u64)], piece: u64, is_sparse: bool, unit: Option<u64>) -> Digest {
        let mut hasher = ContentHasher::with_units(HashKind::Blake3, unit);
        for (byte, length) in runs {
            let mut left = *length;
            while left > 0 {
                let step = left.min(piece);
                left -= step;
                if *byte == 0 && is_sparse {
                    hasher.update_zeros(step);
                } else {
                    hasher.update(&vec![*byte; usize::try_from(step).unwrap()]);
                }
            }
        }
        hasher.finish()
    }

    fn bytes(runs: &[(u8, u64)]) -> Vec<u8> {
        let expand = |(byte, length): &(u8, u64)| {
            std::iter::repeat_n(*byte, usize::try_from(*length).unwrap())
        };
        runs.iter().flat_map(expand).collect()
    }

    #[test]
    fn hole_of_any_length_is_hashed_at_once() {
        let mut hasher = ContentHasher::new(HashKind::Blake3, u64::MAX);
        hasher.update(b"x");
        hasher.update_zeros(u64::MAX - 2);
        hasher.update(b"x");
        let mut other = ContentHasher::new(HashKind::Blake3, u64::MAX);
        other.update(b"x");
        other.update_zeros((1 << 63) + 5);
        other.update_zeros(u64::MAX - 2 - (1 << 63) - 5);
        other.update(b"x");
        assert_eq!(hasher.finish(), other.finish());
    }

    #[test]
    fn digest_is_standard_without_units_of_zeros() {
        let content = bytes(&[(1, 3), (0, 9), (2, 4), (0, 7), (1, 1)]);
        for kind in HashKind::ALL {
            let mut hasher = ContentHasher::with_units(kind, Some(UNIT));
            hasher.update(&content);
            assert_eq!(hasher.finish(), kind.of(&content), "{kind:?}");
            let mut small = ContentHasher::new(kind, FILE_BYTES_MIN - 1);
            small.update_zeros(2 * UNIT_BYTES);
            assert_eq!(small.finish(), kind.of(&vec![0; 2 << 20]), "{kind:?}");
        }
    }

    proptest! {
        #[test]
        fn digests_are_equal_if_and_only_if_contents_are(
            a in prop::collection::vec((0_u8..2, 1_u64..30), 0..8),
            b in prop::collection::vec((0_u8..2, 1_u64..30), 0..8),
            pieces: (u8, u8),
        ) {
            let piece = |n: u8| u64::from(n % 40) + 1;
            let (dense, sparse) = (digest(&a, piece(pieces.0), false, Some(UNIT)),
                digest(&a, piece(pieces.1), true, Some(UNIT)));
            prop_assert_eq!(dense, sparse);
            let other = digest(&b, piece(pieces.1), true, Some(UNIT));
            if bytes(&a).len() == bytes(&b).len() {
                prop_assert_eq!(dense == other, bytes(&a) == bytes(&b));
            }
        }
    }
}
