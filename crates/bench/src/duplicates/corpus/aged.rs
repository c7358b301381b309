//! Writes an aged tree, in which a file's position on the disk correlates little with its name,
//! directory and inode number.

use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

use haul_testing::Random;

use super::content::{Content, FILES_A_DIRECTORY, directory};
use crate::aging::{Aging, Step};

/// The number of times that half of the files are replaced by new files.
const REPLACEMENTS: usize = 8;

/// The distribution of file lengths and contents in a tree.
pub(super) struct Distribution {
    /// The range of file lengths in bytes, as exponents of two.
    bytes_log2: Range<u64>,
    /// The number of different file lengths.
    lengths: u64,
    /// The mean number of files with the same content.
    copies: u64,
}

pub(super) const SMALL: Distribution = Distribution { bytes_log2: 8..14, lengths: 400, copies: 2 };
pub(super) const MEDIUM: Distribution = Distribution { bytes_log2: 16..20, lengths: 16, copies: 4 };

impl Distribution {
    /// Returns the content of the file with the number `file` in a tree of `files` files. One file
    /// in eight is a variant: its last byte differs from that of other files with the same seed.
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

/// Writes the tree: executes the writes, removals and syncs of [`Aging`].
pub(super) fn write(dir: &Path, files: usize, distribution: &Distribution) -> io::Result<()> {
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
                distribution.content(file, files).write_into(&mut buffer);
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
    fn most_contents_have_copies_and_lengths_are_shared() {
        for (distribution, files, bytes) in
            [(SMALL, 6000, 1 << 8..1 << 14), (MEDIUM, 600, 1 << 16..1 << 20)]
        {
            let contents: Vec<_> =
                (0..files as u64).map(|file| distribution.content(file, files)).collect();
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
