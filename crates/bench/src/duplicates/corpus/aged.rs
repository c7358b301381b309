//! Files of a tree that was in use for long: where they lie has little to do with their names, their
//! directories or their inodes.

use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

use haul_disk_sim::Random;

use super::{Content, FILES_A_DIRECTORY, directory};
use crate::aging::{Aging, Step};

/// How often half of the files were replaced.
const REPLACEMENTS: usize = 8;

/// What the files of a tree have in common.
pub(super) struct Life {
    /// Lengths lie between 2 to the power of these.
    bytes_log2: Range<u64>,
    /// So many lengths are there, so that some share one.
    lengths: u64,
    /// For so many files there is one content; which of them have it is left to chance.
    copies: u64,
}

pub(super) const SMALL: Life = Life { bytes_log2: 8..14, lengths: 400, copies: 2 };
pub(super) const MEDIUM: Life = Life { bytes_log2: 16..20, lengths: 16, copies: 4 };

impl Life {
    /// The content of a file of a tree of so many. One of eight differs from the others of its kind
    /// in the last byte.
    fn content(&self, file: u64, files: usize) -> Content {
        let mut random = Random(file << 8);
        let seed = random.below((files as u64 / self.copies).max(1));
        let is_variant = random.below(8) == 0;
        Content { seed, bytes: self.bytes(seed), is_variant }
    }

    fn bytes(&self, seed: u64) -> u64 {
        let mut random = Random(Random(seed).below(self.lengths));
        let Range { start, end } = self.bytes_log2;
        let whole = 1 << (start + random.below(end - start));
        whole + random.below(whole)
    }
}

/// Makes the files and those that were before them.
pub(super) fn make(dir: &Path, files: usize, life: &Life) -> io::Result<()> {
    let directories = files.div_ceil(FILES_A_DIRECTORY) as u64;
    for number in 0..directories {
        fs::create_dir_all(directory(dir, usize::try_from(number).map_err(io::Error::other)?))?;
    }
    let directory_of = |file: u64| Random(file).number() % directories;
    let path_of = |file: u64| {
        let number = usize::try_from(directory_of(file)).unwrap_or_default();
        directory(dir, number).join(format!("{:016x}", Random(!file).number()))
    };
    let mut buffer = Vec::new();
    let (steps, _) = Aging { files, replacements: REPLACEMENTS, seed: 7 }.steps(directory_of);
    for step in steps {
        match step {
            Step::Write(file) => {
                life.content(file, files).write_into(&mut buffer);
                File::create_new(path_of(file))?.write_all(&buffer)?;
            }
            Step::Remove(file) => fs::remove_file(path_of(file))?,
            Step::Sync => rustix::fs::syncfs(File::open(dir)?)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn most_contents_are_there_more_than_once_and_lengths_are_shared() {
        for (life, files, bytes) in
            [(SMALL, 6000, 1 << 8..1 << 14), (MEDIUM, 600, 1 << 16..1 << 20)]
        {
            let contents: Vec<_> =
                (0..files as u64).map(|file| life.content(file, files)).collect();
            let (mut copies, mut lengths) = (BTreeMap::new(), BTreeMap::new());
            for content in &contents {
                *copies.entry((content.seed, content.is_variant)).or_insert(0) += 1;
                *lengths.entry(content.bytes).or_insert(0) += 1;
            }
            assert!(contents.iter().all(|content| bytes.contains(&content.bytes)));
            let alone = copies.values().filter(|copies| **copies == 1).count();
            assert!(alone * 10 < files * 4 && alone > 0, "{alone} of {files} have no copy");
            let lone = lengths.values().filter(|files| **files == 1).count();
            assert!(lone * 100 < files, "{lone} of {files} are alone in their length");
        }
    }
}
