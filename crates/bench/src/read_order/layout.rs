//! Determines the names and lengths of the files of a tree, and the order of writes and removals.
//! Performs no I/O.

use haul_testing::Random;

use crate::aging::{Aging, Step};

/// The length in bytes of the shortest file.
const BYTES_MIN: u64 = 1 << 10;

/// The parameters of a tree of files.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub(super) files: usize,
    pub(super) dirs: usize,
    /// The number of times that half of the files are replaced by new files.
    pub(super) replacements: usize,
    /// The length in bytes that no file reaches, a power of two.
    pub(super) bytes_end: u64,
}

/// The seed of the random numbers, fixed so that every run reads an equal tree.
const SEED: u64 = 1;

impl Layout {
    /// Returns the number of a file's directory.
    pub(super) fn dir_of(&self, file: u64) -> u64 {
        Random(SEED ^ (file << 1)).number() % self.dirs.max(1) as u64
    }

    /// Returns the path of a file. Names are pseudo-random, so that their order differs from the
    /// order of writing.
    pub(super) fn path_of(&self, file: u64) -> String {
        let name = Random(SEED.wrapping_add(file)).number();
        format!("{:03}/{name:016x}", self.dir_of(file))
    }

    /// Returns the length of a file in bytes; each power of two is equally frequent.
    pub(super) fn bytes_of(&self, file: u64) -> usize {
        let mut random = Random(SEED ^ !file);
        let powers = (self.bytes_end / BYTES_MIN).ilog2().max(1);
        let whole = BYTES_MIN << random.below(u64::from(powers));
        usize::try_from(whole + random.below(whole)).unwrap_or_default()
    }

    /// Returns the steps that create the tree, and the numbers of the files that exist at the end.
    pub(super) fn steps(&self) -> (Vec<Step>, Vec<u64>) {
        let Self { files, replacements, .. } = *self;
        Aging { files, replacements, seed: SEED }.steps(|file| self.dir_of(file))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const LAYOUT: Layout = Layout { files: 500, dirs: 7, replacements: 6, bytes_end: 1 << 17 };

    #[test]
    fn live_files_are_those_written_and_not_removed() {
        let (steps, live) = LAYOUT.steps();
        let (mut there, mut removed) = (BTreeSet::new(), 0);
        for step in &steps {
            match step {
                Step::Write(file) => assert!(there.insert(*file)),
                Step::Remove(file) => {
                    assert!(there.remove(file));
                    removed += 1;
                }
                Step::Sync => {}
            }
        }
        assert_eq!(there, live.iter().copied().collect());
        assert_eq!((live.len(), removed), (500, 6 * 250));
        assert_eq!(steps.last(), Some(&Step::Sync));
        assert_eq!(LAYOUT.steps(), (steps, live), "each run has the same tree");
        let (_, fresh) = Layout { replacements: 0, ..LAYOUT }.steps();
        assert!(fresh.is_sorted_by_key(|file| LAYOUT.dir_of(*file)), "directory by directory");
    }

    #[test]
    fn files_differ_in_name_directory_and_length() {
        let files = 0..2000;
        let names: BTreeSet<_> = files.clone().map(|file| LAYOUT.path_of(file)).collect();
        let dirs: BTreeSet<_> = files.clone().map(|file| LAYOUT.dir_of(file)).collect();
        assert_eq!((names.len(), dirs.len()), (2000, LAYOUT.dirs));
        let lengths: Vec<_> = files.map(|file| LAYOUT.bytes_of(file)).collect();
        assert!(lengths.iter().all(|bytes| (1 << 10..1 << 17).contains(bytes)));
        let short = lengths.iter().filter(|bytes| **bytes < 1 << 13).count();
        assert!((600..1200).contains(&short), "{short} of 2000 are below 8 KiB");
    }
}
