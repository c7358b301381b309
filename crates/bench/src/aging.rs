//! Computes the writes and removals that age a directory tree: new files reuse the blocks of
//! removed files, which fragments the file system. Performs no I/O.

use haul_testing::Random;

/// The number of files written between two syncs.
const FILES_PER_SYNC: usize = 200;

/// One step of the aging.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Writes the file with this number.
    Write(u64),
    /// Removes the file with this number.
    Remove(u64),
    /// Syncs the file system.
    Sync,
}

/// The parameters from which the steps are computed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Aging {
    /// The number of files at the beginning and at the end.
    pub(crate) files: usize,
    /// The number of times half of the files are replaced.
    pub(crate) replacements: usize,
    pub(crate) seed: u64,
}

impl Aging {
    /// Returns the steps, and the numbers of the files that exist at the end. `dir_of` returns the
    /// number of a file's directory.
    ///
    /// The first steps write the whole tree directory by directory, as unpacking an archive does.
    pub(crate) fn steps(&self, dir_of: impl Fn(u64) -> u64) -> (Vec<Step>, Vec<u64>) {
        let mut random = Random(self.seed);
        let mut live: Vec<u64> = (0..self.files as u64).collect();
        live.sort_by_key(|file| dir_of(*file));
        let mut steps = written(&live);
        let (mut next, half) = (self.files as u64, self.files / 2);
        for _ in 0..self.replacements {
            let new: Vec<u64> = (next..).take(half).collect();
            next += half as u64;
            steps.extend(written(&new));
            live.extend(new);
            for _ in 0..half {
                let one = random.below(live.len() as u64);
                steps
                    .push(Step::Remove(live.swap_remove(usize::try_from(one).unwrap_or_default())));
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
