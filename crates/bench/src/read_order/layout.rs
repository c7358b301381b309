//! A tree as years of use leave it: what is written and removed, and in which order. Pure.

/// After so many files everything is brought onto the medium, as a machine in use does it.
const FILES_PER_SYNC: usize = 200;

/// The lengths of files lie between 2 to the power of these.
const BYTES_LOG2: std::ops::Range<u64> = 10..17;

/// One step on the way to the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The file of that number is written.
    Write(u64),
    /// It is removed.
    Remove(u64),
    /// All there is comes to the medium.
    Sync,
}

/// A small generator (`SplitMix64`, \[Steele14\]), so that a seed names a tree.
#[derive(Debug, Clone)]
struct Random(u64);

impl Random {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        #[expect(clippy::cast_possible_truncation, reason = "less than a length")]
        let index = (self.number() % end.max(1) as u64) as usize;
        index
    }
}

/// A tree of some size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub(super) files: usize,
    pub(super) dirs: usize,
    /// How often half as many files were written, anywhere, and as many removed.
    pub(super) replacements: usize,
    pub(super) seed: u64,
}

impl Layout {
    /// Which directory a file is in.
    pub(super) fn dir_of(&self, file: u64) -> u64 {
        Random(self.seed ^ (file << 1)).number() % self.dirs.max(1) as u64
    }

    /// What a file is called; the order of names has nothing to do with that of writing.
    pub(super) fn path_of(&self, file: u64) -> String {
        let name = Random(self.seed.wrapping_add(file)).number();
        format!("{:03}/{name:016x}", self.dir_of(file))
    }

    /// How long a file is: short ones and long ones alike, by orders of magnitude.
    pub(super) fn bytes_of(&self, file: u64) -> usize {
        let mut random = Random(self.seed ^ !file);
        let log2 = BYTES_LOG2.start + random.number() % (BYTES_LOG2.end - BYTES_LOG2.start);
        let whole = 1 << log2;
        whole + random.below(whole)
    }

    /// What is done, one after the other; and the files that are there at the end.
    ///
    /// First the whole tree is written, one directory after the other, as unpacking does it.
    pub(super) fn steps(&self) -> (Vec<Step>, Vec<u64>) {
        let mut random = Random(self.seed);
        let mut live: Vec<u64> = (0..self.files as u64).collect();
        live.sort_by_key(|file| self.dir_of(*file));
        let mut steps = written(&live);
        let (mut next, half) = (self.files as u64, self.files / 2);
        for _ in 0..self.replacements {
            let new: Vec<u64> = (next..).take(half).collect();
            next += half as u64;
            steps.extend(written(&new));
            live.extend(new);
            for _ in 0..half {
                steps.push(Step::Remove(live.swap_remove(random.below(live.len()))));
            }
            steps.push(Step::Sync);
        }
        (steps, live)
    }
}

fn written(files: &[u64]) -> Vec<Step> {
    let parts = files.chunks(FILES_PER_SYNC);
    parts.flat_map(|part| part.iter().copied().map(Step::Write).chain([Step::Sync])).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const LAYOUT: Layout = Layout { files: 500, dirs: 7, replacements: 6, seed: 3 };

    #[test]
    fn what_is_there_at_the_end_is_what_was_written_and_not_removed() {
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
        assert_eq!(LAYOUT.steps(), (steps, live), "the same seed is the same tree");
    }

    #[test]
    fn a_fresh_tree_is_written_one_directory_after_the_other() {
        let (steps, live) = Layout { replacements: 0, ..LAYOUT }.steps();
        let written: Vec<_> = steps
            .iter()
            .filter_map(|step| if let Step::Write(file) = step { Some(*file) } else { None })
            .collect();
        assert_eq!((written.len(), &written), (500, &live));
        assert!(written.iter().is_sorted_by_key(|file| LAYOUT.dir_of(*file)));
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
