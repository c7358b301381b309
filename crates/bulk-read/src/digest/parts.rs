//! One file hashed in parts, by several threads.
//!
//! BLAKE3 is a tree over pieces of 1 KiB, so parts of a power of two can be hashed apart and
//! joined \[Blake3\]. The other hashes are chains, and have one part.

use std::ops::Range;

use blake3::Hasher as Blake3;
use blake3::hazmat::{
    ChainingValue, HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root,
};

use super::{Digest, HashKind, Hasher};

/// A part is at least that long: shorter ones are not worth being shared out.
const PART_BYTES_MIN: u64 = 4 << 20;

/// And a file has at most about that many.
const PARTS: u64 = 1024;

/// How a file of some length is hashed in parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    kind: HashKind,
    file_bytes: u64,
    part_bytes: u64,
}

impl Parts {
    /// The parts of a file of `file_bytes`.
    #[must_use]
    pub fn of(kind: HashKind, file_bytes: u64) -> Self {
        let part_bytes = match kind {
            HashKind::Blake3 => (file_bytes / PARTS).max(1).next_power_of_two().max(PART_BYTES_MIN),
            _ => u64::MAX,
        };
        Self { kind, file_bytes, part_bytes }
    }

    /// How many there are; an empty file has one, too.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.file_bytes.div_ceil(self.part_bytes).max(1)
    }

    /// Which bytes of the file the part has.
    #[must_use]
    pub fn range(&self, part: u64) -> Range<u64> {
        let start = part.saturating_mul(self.part_bytes).min(self.file_bytes);
        start..start.saturating_add(self.part_bytes).min(self.file_bytes)
    }

    /// A hasher for the bytes of the part.
    #[must_use]
    pub fn hasher(&self, part: u64) -> PartHasher {
        if self.count() == 1 {
            return PartHasher(Inner::Whole(self.kind.hasher()));
        }
        let mut hasher = Box::<Blake3>::default();
        hasher.set_input_offset(self.range(part).start);
        PartHasher(Inner::Part(hasher))
    }

    /// The sum of the file, from the sums of all parts in their order; `None` when they are not as
    /// many.
    #[must_use]
    pub fn join(&self, sums: &[PartSum]) -> Option<Digest> {
        if sums.len() as u64 != self.count() {
            return None;
        }
        match sums {
            [PartSum(Sum::Whole(digest))] => Some(*digest),
            [_] | [] => None,
            _ => {
                let (left, right) = halves(sums);
                let root = merge_subtrees_root(&merge(left)?, &merge(right)?, Mode::Hash);
                Some(Digest::new(root.as_bytes()))
            }
        }
    }
}

/// The left half is the largest full tree that leaves something for the right one.
fn halves(sums: &[PartSum]) -> (&[PartSum], &[PartSum]) {
    sums.split_at(sums.len().div_ceil(2).next_power_of_two())
}

fn merge(sums: &[PartSum]) -> Option<ChainingValue> {
    match sums {
        [] | [PartSum(Sum::Whole(_))] => None,
        [PartSum(Sum::Part(value))] => Some(*value),
        _ => {
            let (left, right) = halves(sums);
            Some(merge_subtrees_non_root(&merge(left)?, &merge(right)?, Mode::Hash))
        }
    }
}

/// Takes the bytes of one part.
#[derive(Debug, Clone)]
pub struct PartHasher(Inner);

#[derive(Debug, Clone)]
enum Inner {
    Whole(Hasher),
    Part(Box<Blake3>),
}

/// The sum of one part, of use only together with all others.
#[derive(Debug, Clone, Copy)]
pub struct PartSum(Sum);

#[derive(Debug, Clone, Copy)]
enum Sum {
    Whole(Digest),
    Part(ChainingValue),
}

impl PartHasher {
    /// Takes the next bytes; never more than the part has.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            Inner::Whole(hasher) => hasher.update(bytes),
            Inner::Part(hasher) => drop(hasher.update(bytes)),
        }
    }

    /// The sum of the part; `None` when it got no bytes, though it should.
    #[must_use]
    pub fn finish(self) -> Option<PartSum> {
        match self.0 {
            Inner::Whole(hasher) => Some(PartSum(Sum::Whole(hasher.finish()))),
            Inner::Part(hasher) if hasher.count() == 0 => None,
            Inner::Part(hasher) => Some(PartSum(Sum::Part(hasher.finalize_non_root()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(parts: &Parts, bytes: &[u8]) -> Option<Digest> {
        let sum = |part| {
            let range = parts.range(part);
            let mut hasher = parts.hasher(part);
            let range = usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?;
            bytes[range].chunks(100_000).for_each(|piece| hasher.update(piece));
            hasher.finish()
        };
        let sums: Option<Vec<_>> = (0..parts.count()).map(sum).collect();
        parts.join(&sums?)
    }

    #[test]
    fn the_sum_does_not_depend_on_the_parts() {
        let bytes: Vec<u8> = (0..70_001_u32).map(|n| (n * 7 % 251) as u8).collect();
        for part_bytes in [1024, 2048, 8192, 65_536, 131_072] {
            for length in [0, 1, 1023, 1024, 1025, 4096, 8193, 65_535, 65_536, 65_537, 70_001] {
                let parts = Parts { kind: HashKind::Blake3, file_bytes: length as u64, part_bytes };
                let expected = HashKind::Blake3.of(&bytes[..length]);
                assert_eq!(sum(&parts, &bytes[..length]), Some(expected), "{part_bytes} {length}");
            }
        }
    }

    #[test]
    fn parts_are_large_and_few_and_only_of_trees() {
        let parts = |bytes| Parts::of(HashKind::Blake3, bytes);
        assert_eq!(parts(0).count(), 1);
        assert_eq!((parts(4 << 20).count(), parts((4 << 20) + 1).count()), (1, 2));
        assert_eq!(parts(9 << 20).range(2), 8 << 20..9 << 20);
        assert!((512..=1024).contains(&parts(1 << 40).count()));
        for kind in HashKind::ALL.into_iter().filter(|kind| *kind != HashKind::Blake3) {
            assert_eq!(Parts::of(kind, 1 << 40).count(), 1);
            assert_eq!(sum(&Parts::of(kind, 3), b"abc"), Some(kind.of(b"abc")));
        }
    }

    #[test]
    fn parts_that_are_missing_make_no_sum() {
        let parts = Parts { kind: HashKind::Blake3, file_bytes: 3000, part_bytes: 1024 };
        assert!(parts.hasher(1).finish().is_none());
        assert!(parts.join(&[]).is_none());
    }
}
