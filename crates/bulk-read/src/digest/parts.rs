//! Hashes one file in parts, so that several threads can share the work.
//!
//! BLAKE3 is a tree over chunks of 1 KiB, so parts whose length is a power of two can be hashed
//! independently and joined \[Blake3\]. The other hash functions are sequential, so a file hashed
//! with them has a single part.

use std::ops::Range;

use blake3::Hasher as Blake3;
use blake3::hazmat::{
    ChainingValue, HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root,
};

use super::{Digest, HashKind, Hasher};

/// The minimum length of a part, in bytes: shorter parts are not worth distributing to threads.
const PART_BYTES_MIN: u64 = 4 << 20;

/// The approximate maximum number of parts of a file.
const PARTS: u64 = 1024;

/// The division of a file into parts for hashing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    kind: HashKind,
    file_bytes: u64,
    part_bytes: u64,
}

impl Parts {
    /// Divides a file of `file_bytes` bytes.
    #[must_use]
    pub fn of(kind: HashKind, file_bytes: u64) -> Self {
        let part_bytes = match kind {
            HashKind::Blake3 => (file_bytes / PARTS).max(1).next_power_of_two().max(PART_BYTES_MIN),
            _ => u64::MAX,
        };
        Self { kind, file_bytes, part_bytes }
    }

    /// Returns the number of parts, at least 1.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.file_bytes.div_ceil(self.part_bytes).max(1)
    }

    /// Returns the byte range of a part.
    #[must_use]
    pub fn range(&self, part: u64) -> Range<u64> {
        let start = part.saturating_mul(self.part_bytes).min(self.file_bytes);
        start..start.saturating_add(self.part_bytes).min(self.file_bytes)
    }

    /// Creates a hasher for a part.
    #[must_use]
    pub fn hasher(&self, part: u64) -> PartHasher {
        if self.count() == 1 {
            return PartHasher(Inner::Whole(self.kind.hasher()));
        }
        let mut hasher = Box::<Blake3>::default();
        hasher.set_input_offset(self.range(part).start);
        PartHasher(Inner::Part(hasher))
    }

    /// Combines the results of all parts, in order, into the digest of the file; returns `None` if
    /// the number of results is wrong.
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

/// Splits the parts into two subtrees. As BLAKE3 requires, the number of parts on the left is the
/// largest power of two that leaves at least one part for the right.
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

/// A hasher of one part.
#[derive(Debug, Clone)]
pub struct PartHasher(Inner);

#[derive(Debug, Clone)]
enum Inner {
    Whole(Hasher),
    Part(Box<Blake3>),
}

/// The result of hashing one part. [`Parts::join`] combines the results of all parts into a digest.
#[derive(Debug, Clone, Copy)]
pub struct PartSum(Sum);

#[derive(Debug, Clone, Copy)]
enum Sum {
    Whole(Digest),
    Part(ChainingValue),
}

impl PartHasher {
    /// Adds the next bytes. The total must not exceed the length of the part.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            Inner::Whole(hasher) => hasher.update(bytes),
            Inner::Part(hasher) => drop(hasher.update(bytes)),
        }
    }

    /// Returns the result. Returns `None` if the file has several parts and this part received no
    /// bytes.
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
    fn digest_is_independent_of_the_parts() {
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
    fn only_large_blake3_files_have_several_parts() {
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
    fn missing_parts_yield_no_digest() {
        let parts = Parts { kind: HashKind::Blake3, file_bytes: 3000, part_bytes: 1024 };
        assert!(parts.hasher(1).finish().is_none());
        assert!(parts.join(&[]).is_none());
    }
}
