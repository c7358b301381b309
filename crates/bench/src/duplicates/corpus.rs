//! Writes the files of each corpus. Seeds are fixed, so every run searches equal files.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use haul_measure::{Error, Result};
use haul_testing::{Random, noise};

use crate::aging::{Aging, Step};
use crate::named::named;

named! {
    /// A set of files in which the tools search for duplicates.
    pub enum Corpus {
        /// Files of up to 16 KiB. Several files share each length; a third of the files are copies,
        /// and a sixth differ from another file only in the last byte.
        Small = "small",
        /// Big files of one length that differ in a range in the middle.
        Middle = "middle",
        /// Pairs of big files with equal content.
        Big = "big",
        /// Small files on a simulated spinning disk, in a tree in which many files were replaced.
        Spinning = "spinning",
    }
}

const FILES_PER_DIRECTORY: usize = 100;
/// The number of times that half of the files of an aged tree are replaced by new files.
const REPLACEMENTS: usize = 8;
/// The possible lengths of small files, few enough that several files share each length.
const STEP_BYTES: u64 = 32;
const STEPS: u64 = 512;
const BIG_FILES: u64 = 16;
const CHUNK_BYTES: u64 = 1 << 20;

/// The sizes of the corpora.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) small_files: usize,
    pub(super) spinning_files: usize,
    /// The total length in bytes of the big files of a corpus.
    pub(super) big_bytes: u64,
}

/// Writes the files of `corpus` to `dir`.
pub(super) fn write(corpus: Corpus, sizes: Sizes, dir: &Path) -> Result<()> {
    let written = match corpus {
        Corpus::Small => write_small(dir, &contents(sizes.small_files)),
        Corpus::Spinning => write_aged(dir, sizes.spinning_files),
        Corpus::Middle => write_middle(dir, sizes.big_bytes),
        Corpus::Big => (0..BIG_FILES)
            .try_for_each(|number| write_big(dir, number, number / 2, sizes.big_bytes).map(drop)),
    };
    written.map_err(Error::other(format!("write the corpus {corpus} to {}", dir.display())))
}

/// The content of a small file. If `is_variant`, its last byte differs from that of files with the
/// same seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Content {
    seed: u64,
    bytes: u64,
    is_variant: bool,
}

impl Content {
    fn write(self, path: &Path) -> io::Result<()> {
        let mut bytes = noise(self.seed, index(self.bytes));
        if let (true, Some(last)) = (self.is_variant, bytes.last_mut()) {
            *last ^= 1;
        }
        File::create_new(path)?.write_all(&bytes)
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or_default()
}

/// Returns the contents of `files` small files, a third of which
/// are copies of an earlier file; a quarter of the rest differ from an earlier file only in the last
/// byte.
fn contents(files: usize) -> Vec<Content> {
    let mut random = Random(0x68_61_75_6c);
    let mut contents: Vec<Content> = Vec::with_capacity(files);
    for number in 0..files {
        let other = contents.get(random.index(number.max(1))).copied();
        contents.push(match (random.below(12), other) {
            (0..4, Some(other)) => other,
            (4..6, Some(other)) => Content { is_variant: !other.is_variant, ..other },
            _ => {
                // The smaller one of two random numbers, so that short files are more frequent.
                let bytes = (random.below(STEPS).min(random.below(STEPS)) + 1) * STEP_BYTES;
                Content { seed: random.number(), bytes, is_variant: false }
            }
        });
    }
    contents
}

/// Returns the path of the directory with the number `number`.
fn directory(dir: &Path, number: usize) -> PathBuf {
    dir.join(format!("{:02}", number / 100)).join(format!("{:02}", number % 100))
}

fn create_directories(dir: &Path, files: usize) -> io::Result<u64> {
    let count = files.div_ceil(FILES_PER_DIRECTORY);
    (0..count).try_for_each(|number| fs::create_dir_all(directory(dir, number)))?;
    Ok(count as u64)
}

/// Writes a fresh tree in random order, so that the order of the blocks differs from that of the
/// names.
fn write_small(dir: &Path, contents: &[Content]) -> io::Result<()> {
    create_directories(dir, contents.len())?;
    let mut order: Vec<_> = contents.iter().enumerate().collect();
    let mut random = Random(7);
    order.sort_by_cached_key(|_| random.number());
    order.into_iter().try_for_each(|(number, content)| {
        let name = format!("{:08x}-{number}", Random(number as u64).number() >> 32);
        content.write(&directory(dir, number / FILES_PER_DIRECTORY).join(name))
    })
}

/// Writes an aged tree, in which a file's position on the disk correlates little with its name,
/// directory and inode number.
fn write_aged(dir: &Path, files: usize) -> io::Result<()> {
    let directories = create_directories(dir, files)?;
    let contents = contents(files);
    let directory_of = |file: u64| Random(file).number() % directories;
    let path = |file: u64| {
        let name = format!("{:016x}", Random(!file).number());
        directory(dir, index(directory_of(file))).join(name)
    };
    let (steps, _) = Aging { files, replacements: REPLACEMENTS, seed: 7 }.steps(directory_of);
    steps.into_iter().try_for_each(|step| match step {
        Step::Write(file) => contents[index(file % files as u64)].write(&path(file)),
        Step::Remove(file) => fs::remove_file(path(file)),
        Step::Sync => Ok(rustix::fs::syncfs(File::open(dir)?)?),
    })
}

/// Writes one of the big files of a corpus, which together have `all_bytes` bytes.
fn write_big(dir: &Path, number: u64, seed: u64, all_bytes: u64) -> io::Result<File> {
    let mut file = File::create_new(dir.join(format!("big-{number:02}")))?;
    for at in 0..(all_bytes / BIG_FILES / CHUNK_BYTES).max(1) {
        file.write_all(&noise(seed ^ (at << 20), index(CHUNK_BYTES)))?;
    }
    Ok(file)
}

/// Writes files that differ in the sixteenth in the middle.
fn write_middle(dir: &Path, all_bytes: u64) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    (0..BIG_FILES).try_for_each(|number| {
        let file = write_big(dir, number, 1, all_bytes)?;
        let bytes = file.metadata()?.len();
        file.write_all_at(&noise(100 + number, index(bytes / 16)), bytes / 2 - bytes / 32)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_third_of_the_small_files_are_copies_and_nearly_all_share_their_length() {
        let contents = contents(60_000);
        let mut lengths: BTreeMap<u64, usize> = BTreeMap::new();
        let mut copies: BTreeMap<Content, usize> = BTreeMap::new();
        for content in &contents {
            *lengths.entry(content.bytes).or_default() += 1;
            *copies.entry(*content).or_default() += 1;
        }
        assert!(lengths.keys().all(|bytes| (1..=16 << 10).contains(bytes)));
        assert!(lengths.values().filter(|files| **files == 1).count() < 60);
        assert!((20_000..32_000).contains(&(contents.len() - copies.len())), "{}", copies.len());
    }

    #[test]
    fn big_files_differ_in_the_middle_only() {
        let dir = tempfile::tempdir().unwrap();
        write_middle(dir.path(), 16 << 20).unwrap();
        let read = |number| fs::read(dir.path().join(format!("big-{number:02}"))).unwrap();
        let (one, two) = (read(3), read(4));
        let differ: Vec<_> = (0..one.len()).filter(|at| one[*at] != two[*at]).collect();
        let (first, last) = (differ[0], differ[differ.len() - 1]);
        assert!(one.len() == 1 << 20 && first > 490_000 && last < 560_000, "{first} {last}");
    }
}
