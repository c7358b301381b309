//! Plans which ranges of blocks to share, from the digests of the blocks. No I/O.

/// A block of a file, and its digest. A digest is 8 bytes long, because the kernel compares the
/// bytes before it shares a block: a collision costs a comparison and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BlockDigest {
    pub(super) digest: u64,
    pub(super) at: Place,
}

/// The place of a block: the index of its file, and its number in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) file: u32,
    pub(super) block: u32,
}

impl Place {
    fn plus(self, blocks: u32) -> Self {
        Self { block: self.block.saturating_add(blocks), ..self }
    }
}

/// Adjacent blocks that probably equal adjacent blocks at a place before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    /// The first block to share.
    pub(super) from: Place,
    /// The first block to replace by it.
    pub(super) to: Place,
    pub(super) blocks: u32,
}

impl Run {
    /// `true` if the run can be extended by the block `to`, which follows it, if `from` equals it.
    /// Two ranges of one file must not overlap.
    fn accepts(&self, from: Place, to: Place) -> bool {
        let overlaps = from.file == to.file && from >= self.to;
        to == self.to.plus(self.blocks) && from == self.from.plus(self.blocks) && !overlaps
    }
}

/// Returns the runs in the order of the files. Each block that has an equal one before it is in
/// exactly one run, whose blocks `from` are before it. A long range that was copied as a whole is
/// one run.
pub(super) fn runs(mut blocks: Vec<BlockDigest>) -> Vec<Run> {
    blocks.sort_unstable();
    // Blocks without an equal one are dropped.
    let mut repeated: Vec<BlockDigest> = Vec::new();
    let mut groups = Vec::new();
    for group in blocks.chunk_by(|a, b| a.digest == b.digest).filter(|group| group.len() > 1) {
        let start = repeated.len();
        repeated.extend_from_slice(group);
        groups.extend(group.iter().map(|block| (block.at, start, group.len())));
    }
    drop(blocks);
    groups.sort_unstable();
    let mut runs: Vec<Run> = Vec::new();
    for (to, start, count) in groups {
        let group = &repeated[start..start + count];
        let is_member = |place: Place| group.binary_search_by_key(&place, |block| block.at).is_ok();
        if let Some(run) = runs.last_mut() {
            let from = run.from.plus(run.blocks);
            if run.accepts(from, to) && is_member(from) {
                run.blocks += 1;
                continue;
            }
        }
        let from = group[0].at;
        if from < to {
            runs.push(Run { from, to, blocks: 1 });
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the blocks of files that are given as the digests of their blocks; 0 is a hole.
    fn blocks(files: &[&[u64]]) -> Vec<BlockDigest> {
        let file = |(file, digests): (u32, &&[u64])| {
            let blocks: Vec<_> = (0..)
                .zip(digests.iter().copied())
                .filter(|(_, digest)| *digest > 0)
                .map(|(block, digest)| BlockDigest { digest, at: Place { file, block } })
                .collect();
            blocks
        };
        (0..).zip(files).flat_map(file).collect()
    }

    /// The file and the block of the first block `from` and `to` of a run, and its length.
    type Planned = ((u32, u32), (u32, u32), u32);

    fn planned(files: &[&[u64]]) -> Vec<Planned> {
        let pair = |place: Place| (place.file, place.block);
        runs(blocks(files)).iter().map(|run| (pair(run.from), pair(run.to), run.blocks)).collect()
    }

    #[test]
    fn equal_neighbours_form_one_run() {
        for (files, expected, why) in [
            (&[&[1, 2, 3][..], &[4, 5]][..], &[][..], "nothing equal"),
            (&[&[1, 2, 3], &[1, 2, 3]], &[((0, 0), (1, 0), 3)], "a copy"),
            (&[&[1, 2, 3], &[9, 2, 3, 1]], &[((0, 1), (1, 1), 2), ((0, 0), (1, 3), 1)], "moved"),
            (&[&[1, 2, 0, 3], &[1, 2, 0, 3]], &[((0, 0), (1, 0), 2), ((0, 3), (1, 3), 1)], "hole"),
            (
                &[&[1, 2], &[1, 2], &[1, 2]],
                &[((0, 0), (1, 0), 2), ((0, 0), (2, 0), 2)],
                "each copy shares with the first",
            ),
            (
                &[&[7, 1], &[7, 2], &[7, 2]],
                &[((0, 0), (1, 0), 1), ((0, 0), (2, 0), 1), ((1, 1), (2, 1), 1)],
                "the first of each block",
            ),
            (
                &[&[5, 5, 5, 5]],
                &[((0, 0), (0, 1), 1), ((0, 0), (0, 2), 2)],
                "ranges of one file do not overlap",
            ),
            (&[&[1, 2, 1, 2]], &[((0, 0), (0, 2), 2)], "a file that repeats itself"),
        ] {
            assert_eq!(planned(files), expected, "{why}");
        }
    }

    proptest! {
        #[test]
        fn each_repeated_block_is_shared_once_with_an_equal_one_before_it(
            files in prop::collection::vec(prop::collection::vec(0_u64..5, 0..12), 0..6),
        ) {
            let slices: Vec<&[u64]> = files.iter().map(Vec::as_slice).collect();
            let all = blocks(&slices);
            let digest = |place: Place| files[place.file as usize][place.block as usize];
            let mut shared = Vec::new();
            for run in runs(all.clone()) {
                prop_assert!(run.from.file != run.to.file
                    || run.from.block + run.blocks <= run.to.block, "{run:?} overlaps");
                for number in 0..run.blocks {
                    let (from, to) = (run.from.plus(number), run.to.plus(number));
                    prop_assert!(from < to);
                    prop_assert_eq!(digest(from), digest(to));
                    shared.push(to);
                }
            }
            let repeated = all.iter().filter(|block| {
                all.iter().any(|other| other.digest == block.digest && other.at < block.at)
            });
            prop_assert_eq!(shared, repeated.map(|block| block.at).collect::<Vec<_>>());
        }
    }
}
