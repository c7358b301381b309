//! How years of use leave a tree: files are written and removed, and what is new takes the places of
//! what is gone. Pure.

use haul_disk_sim::Random;

/// After so many files everything is brought onto the medium, as a machine in use does it.
const FILES_PER_SYNC: usize = 200;

/// One step on the way to the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The file of that number is written.
    Write(u64),
    /// It is removed.
    Remove(u64),
    /// All there is comes to the medium.
    Sync,
}

/// How long a tree was in use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Aging {
    /// How many files there are, at first and at the end.
    pub(crate) files: usize,
    /// How often half as many were written, anywhere, and as many removed.
    pub(crate) replacements: usize,
    pub(crate) seed: u64,
}

impl Aging {
    /// What is done, one after the other; and the files that are there at the end.
    ///
    /// First the whole tree is written, one directory after the other, as unpacking does it.
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
