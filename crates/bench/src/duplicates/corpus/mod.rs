//! The files that are searched: made from a seed, so that every run finds the same.

mod aged;
mod big;
mod small;

use std::path::{Path, PathBuf};
use std::str::FromStr;

use haul_disk_sim::Random;

use crate::error::{Error, Result};

/// Files of a directory, where there are many.
const FILES_A_DIRECTORY: usize = 100;

/// What is searched for duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Corpus {
    /// Many files of up to 16 KiB, each of a length others have too; a third are copies, and many
    /// of the others differ in their last byte alone.
    Small,
    /// Big files of one length which differ in a stretch in the middle.
    Middle,
    /// Big files of one length which differ in one page somewhere.
    Somewhere,
    /// Big files, each of them twice.
    Big,
    /// A big file and its reflinked copies, on a file system of its own.
    Reflinks,
    /// Small files on a simulated spinning disk, in a tree that was in use for long.
    Spinning,
    /// The same in a tree that was just written.
    SpinningFresh,
    /// Files of 64 KiB to 1 MiB, most of them more than once, in a tree that was in use for long.
    SpinningMedium,
    /// A million short files, for the memory that is needed.
    Paths,
}

impl Corpus {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Small,
        Self::Middle,
        Self::Somewhere,
        Self::Big,
        Self::Reflinks,
        Self::Spinning,
        Self::SpinningFresh,
        Self::SpinningMedium,
        Self::Paths,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Middle => "middle",
            Self::Somewhere => "somewhere",
            Self::Big => "big",
            Self::Reflinks => "reflinks",
            Self::Spinning => "spinning",
            Self::SpinningFresh => "spinning-fresh",
            Self::SpinningMedium => "spinning-medium",
            Self::Paths => "paths",
        }
    }

    /// Whether it belongs on a simulated spinning disk.
    pub(super) fn spins(self) -> bool {
        matches!(self, Self::Spinning | Self::SpinningFresh | Self::SpinningMedium)
    }
}

impl FromStr for Corpus {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|corpus| corpus.name() == name).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|corpus| corpus.name()).collect();
            format!("there is no corpus {name:?}; there are: {}", names.join(", "))
        })
    }
}

/// How big the corpora are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Small files.
    pub small_files: usize,
    /// Small files on the spinning disk; of the longer ones there a tenth.
    pub spinning_files: usize,
    /// Files of the last corpus.
    pub paths: usize,
    /// Bytes of the big files of a corpus, all together.
    pub big_bytes: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { small_files: 60_000, spinning_files: 6_000, paths: 1_000_000, big_bytes: 4 << 30 }
    }
}

impl Sizes {
    /// Makes the files of `corpus` in `dir`.
    pub(super) fn make(self, corpus: Corpus, dir: &Path) -> Result<()> {
        let made = match corpus {
            Corpus::Small => small::make(dir, self.small_files, &small::SMALL),
            Corpus::SpinningFresh => small::make(dir, self.spinning_files, &small::SMALL),
            Corpus::Paths => small::make(dir, self.paths, &small::SHORT),
            Corpus::Spinning => aged::make(dir, self.spinning_files, &aged::SMALL),
            Corpus::SpinningMedium => aged::make(dir, self.spinning_files / 10, &aged::MEDIUM),
            Corpus::Middle => big::differing(dir, self.big_bytes, big::in_the_middle),
            Corpus::Somewhere => big::differing(dir, self.big_bytes, big::somewhere),
            Corpus::Big => big::twice(dir, self.big_bytes),
            Corpus::Reflinks => big::reflinks(dir, self.big_bytes),
        };
        made.map_err(Error::other(format!(
            "make the corpus {} in {}",
            corpus.name(),
            dir.display()
        )))
    }
}

/// One of many directories.
fn directory(dir: &Path, number: usize) -> PathBuf {
    dir.join(format!("{:02}", number / 100)).join(format!("{:02}", number % 100))
}

/// Which content a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Content {
    seed: u64,
    bytes: u64,
    /// Its last byte is another.
    is_variant: bool,
}

impl Content {
    /// Writes it in the place of what is in `buffer`.
    fn write_into(self, buffer: &mut Vec<u8>) {
        buffer.resize(usize::try_from(self.bytes).unwrap_or_default(), 0);
        fill(buffer, self.seed);
        if let (true, Some(last)) = (self.is_variant, buffer.last_mut()) {
            *last ^= 1;
        }
    }
}

fn fill(bytes: &mut [u8], seed: u64) {
    let mut random = Random(seed);
    for piece in bytes.chunks_mut(8) {
        piece.copy_from_slice(&random.number().to_le_bytes()[..piece.len()]);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use super::*;

    #[test]
    fn a_corpus_is_the_same_each_time() {
        let read = |dir: &Path, files: usize| {
            let mut contents = BTreeMap::new();
            for number in 0..files / FILES_A_DIRECTORY {
                for entry in fs::read_dir(directory(dir, number)).unwrap() {
                    let entry = entry.unwrap();
                    contents.insert(entry.file_name(), fs::read(entry.path()).unwrap());
                }
            }
            contents
        };
        for (corpus, files) in [(Corpus::Small, 300), (Corpus::Spinning, 200)] {
            let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let sizes = Sizes { small_files: 300, spinning_files: 200, ..Sizes::default() };
            sizes.make(corpus, one.path()).unwrap();
            sizes.make(corpus, two.path()).unwrap();
            assert_eq!(read(one.path(), files).len(), files);
            assert!(read(one.path(), files) == read(two.path(), files));
        }
    }

    #[test]
    fn a_wrong_name_is_told_the_right_ones() {
        assert_eq!("big".parse(), Ok(Corpus::Big));
        assert!("bigger".parse::<Corpus>().unwrap_err().contains("small, middle"));
    }
}
