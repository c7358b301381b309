//! Writes the files of each corpus. Seeds are fixed, so every run searches equal files. In an aged
//! tree, many files were replaced by new files, as in a tree in use; in a fresh tree, none were.

mod aged;
mod big;
mod content;
mod small;

use std::path::Path;

use haul_measure::{Error, Result};

use crate::named::named;

named! {
    /// A set of files in which the tools search for duplicates.
    pub enum Corpus {
        /// Files of up to 16 KiB. Several files share each length; a third of the files are copies,
        /// and a sixth differ from another file only in the last byte.
        Small = "small",
        /// Big files of one length that differ in a range in the middle.
        Middle = "middle",
        /// Big files of one length that differ in one page.
        Somewhere = "somewhere",
        /// Pairs of big files with equal content.
        Big = "big",
        /// A big file and its reflinks, on a btrfs image.
        Reflinks = "reflinks",
        /// Small files on a simulated spinning disk, in an aged tree.
        Spinning = "spinning",
        /// Small files on a simulated spinning disk, in a fresh tree.
        SpinningFresh = "spinning-fresh",
        /// Files of 64 KiB to 1 MiB, most of them with copies, in an aged tree.
        SpinningMedium = "spinning-medium",
        /// Files of up to 256 B, by default a million, to measure memory use.
        Paths = "paths",
    }
}

impl Corpus {
    /// Returns `true` if the corpus belongs on a simulated spinning disk.
    pub(super) fn is_on_spinning_disk(self) -> bool {
        matches!(self, Self::Spinning | Self::SpinningFresh | Self::SpinningMedium)
    }
}

/// The sizes of the corpora.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sizes {
    /// The number of small files.
    pub(super) small_files: usize,
    /// The number of small files on the spinning disk; there are a tenth as many medium ones.
    pub(super) spinning_files: usize,
    /// The number of files of [`Corpus::Paths`].
    pub(super) paths: usize,
    /// The total length in bytes of the big files of a corpus.
    pub(super) big_bytes: u64,
}

impl Sizes {
    /// Writes the files of `corpus` to `dir`.
    pub(super) fn write(self, corpus: Corpus, dir: &Path) -> Result<()> {
        let written = match corpus {
            Corpus::Small => small::write(dir, self.small_files, &small::SMALL),
            Corpus::SpinningFresh => small::write(dir, self.spinning_files, &small::SMALL),
            Corpus::Paths => small::write(dir, self.paths, &small::SHORT),
            Corpus::Spinning => aged::write(dir, self.spinning_files, &aged::SMALL),
            Corpus::SpinningMedium => aged::write(dir, self.spinning_files / 10, &aged::MEDIUM),
            Corpus::Middle => big::differing(dir, self.big_bytes, big::in_the_middle),
            Corpus::Somewhere => big::differing(dir, self.big_bytes, big::somewhere),
            Corpus::Big => big::twice(dir, self.big_bytes),
            Corpus::Reflinks => big::reflinks(dir, self.big_bytes),
        };
        written.map_err(Error::other(format!("write the corpus {corpus} to {}", dir.display())))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use super::content::{FILES_A_DIRECTORY, directory};
    use super::*;

    #[test]
    fn corpus_is_deterministic() {
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
            sizes.write(corpus, one.path()).unwrap();
            sizes.write(corpus, two.path()).unwrap();
            assert_eq!(read(one.path(), files).len(), files);
            assert!(read(one.path(), files) == read(two.path(), files));
        }
    }

    #[test]
    fn unknown_corpus_error_lists_the_names() {
        assert_eq!("big".parse(), Ok(Corpus::Big));
        assert!("bigger".parse::<Corpus>().unwrap_err().contains("small, middle"));
    }
}
