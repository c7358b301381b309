//! The files that are searched: made from a seed, so that every run finds the same.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use haul_disk_sim::Random;

use crate::error::{Error, Result};

const PAGE_BYTES: u64 = 4096;
/// Files of a directory of small files.
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
    /// Small files on a simulated spinning disk.
    Spinning,
    /// A million short files, for the memory that is needed.
    Paths,
}

impl Corpus {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Small,
        Self::Middle,
        Self::Somewhere,
        Self::Big,
        Self::Reflinks,
        Self::Spinning,
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
            Self::Paths => "paths",
        }
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
    /// Small files on the spinning disk.
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
            Corpus::Small => small(dir, self.small_files, &SMALL),
            Corpus::Spinning => small(dir, self.spinning_files, &SMALL),
            Corpus::Paths => small(dir, self.paths, &SHORT),
            Corpus::Middle => differing(dir, self.big_bytes, |bytes, number| {
                // A sixteenth, right in the middle.
                Stretch {
                    at: whole_pages(bytes / 2 - bytes / 32),
                    bytes: whole_pages(bytes / 16),
                    number,
                }
            }),
            Corpus::Somewhere => differing(dir, self.big_bytes, |bytes, number| {
                let page = Random(number + 1).below((bytes / PAGE_BYTES).max(1));
                Stretch { at: page * PAGE_BYTES, bytes: PAGE_BYTES, number }
            }),
            Corpus::Big => twice(dir, self.big_bytes),
            Corpus::Reflinks => reflinks(dir, self.big_bytes),
        };
        made.map_err(Error::other(format!(
            "make the corpus {} in {}",
            corpus.name(),
            dir.display()
        )))
    }
}

fn fill(bytes: &mut [u8], seed: u64) {
    let mut random = Random(seed);
    for piece in bytes.chunks_mut(8) {
        piece.copy_from_slice(&random.number().to_le_bytes()[..piece.len()]);
    }
}

/// How long small files are: one of so many lengths, so that each length is shared by some.
struct Lengths {
    step_bytes: u64,
    steps: u64,
}

const SMALL: Lengths = Lengths { step_bytes: 32, steps: 512 };
const SHORT: Lengths = Lengths { step_bytes: 1, steps: 256 };

/// Which content a small file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Content {
    seed: u64,
    bytes: u64,
    /// Its last byte is another.
    is_variant: bool,
}

/// The content of each of `files` small files. A third are copies of one before, and of what is
/// left a quarter differ from one before in the last byte.
fn contents(files: usize, lengths: &Lengths) -> Vec<Content> {
    let mut random = Random(0x68_61_75_6c);
    let mut contents: Vec<Content> = Vec::with_capacity(files);
    for number in 0..files {
        let of = usize::try_from(random.below(number.max(1) as u64)).unwrap_or_default();
        let kind = if number == 0 { 11 } else { random.below(12) };
        contents.push(match (kind, contents.get(of).copied()) {
            (0..4, Some(other)) => other,
            (4..6, Some(other)) => Content { is_variant: !other.is_variant, ..other },
            _ => {
                // Rather short, as files are.
                let steps = random.below(lengths.steps).min(random.below(lengths.steps)) + 1;
                let bytes = steps * lengths.step_bytes;
                Content { seed: random.number(), bytes, is_variant: false }
            }
        });
    }
    contents
}

fn small(dir: &Path, files: usize, lengths: &Lengths) -> io::Result<()> {
    let mut buffer = Vec::new();
    // Written in another order than they lie in the directories, as files come and go in life.
    let mut order: Vec<_> = contents(files, lengths).into_iter().enumerate().collect();
    let mut random = Random(7);
    for at in (1..order.len()).rev() {
        order.swap(at, usize::try_from(random.below(at as u64 + 1)).unwrap_or_default());
    }
    for number in 0..files.div_ceil(FILES_A_DIRECTORY) {
        fs::create_dir_all(directory(dir, number))?;
    }
    for (number, content) in order {
        buffer.resize(usize::try_from(content.bytes).map_err(io::Error::other)?, 0);
        fill(&mut buffer, content.seed);
        if let (true, Some(last)) = (content.is_variant, buffer.last_mut()) {
            *last ^= 1;
        }
        let name = format!("{:08x}", Random(number as u64).number() >> 32);
        let path = directory(dir, number / FILES_A_DIRECTORY).join(format!("{name}-{number}"));
        File::create_new(path)?.write_all(&buffer)?;
    }
    Ok(())
}

fn directory(dir: &Path, number: usize) -> PathBuf {
    dir.join(format!("{:02}", number / 100)).join(format!("{:02}", number % 100))
}

/// A stretch that differs from file to file.
struct Stretch {
    at: u64,
    bytes: u64,
    number: u64,
}

fn whole_pages(bytes: u64) -> u64 {
    bytes / PAGE_BYTES * PAGE_BYTES
}

const BIG_FILES: u64 = 16;
const CHUNK_BYTES: u64 = 1 << 20;

fn write_big(path: &Path, seed: u64, bytes: u64) -> io::Result<File> {
    let mut file = File::create_new(path)?;
    let mut chunk = vec![0; 1 << 20];
    for number in 0..bytes / CHUNK_BYTES {
        fill(&mut chunk, seed ^ (number << 20));
        file.write_all(&chunk)?;
    }
    Ok(file)
}

fn big_file_bytes(all_bytes: u64) -> u64 {
    (all_bytes / BIG_FILES).max(CHUNK_BYTES) / CHUNK_BYTES * CHUNK_BYTES
}

fn differing(dir: &Path, all: u64, stretch: impl Fn(u64, u64) -> Stretch) -> io::Result<()> {
    let bytes = big_file_bytes(all);
    for number in 0..BIG_FILES {
        let file = write_big(&dir.join(format!("big-{number:02}")), 1, bytes)?;
        let Stretch { at, bytes, number } = stretch(bytes, number);
        let mut other = vec![0; usize::try_from(bytes).map_err(io::Error::other)?];
        fill(&mut other, 100 + number);
        file.write_all_at(&other, at)?;
    }
    Ok(())
}

fn twice(dir: &Path, all_bytes: u64) -> io::Result<()> {
    for number in 0..BIG_FILES {
        let name = format!("big-{number:02}");
        write_big(&dir.join(name), number / 2, big_file_bytes(all_bytes))?;
    }
    Ok(())
}

/// A sixteenth of the bytes, eight times.
fn reflinks(dir: &Path, all_bytes: u64) -> io::Result<()> {
    let file = write_big(&dir.join("original"), 1, big_file_bytes(all_bytes))?;
    file.sync_all()?;
    for number in 1..8 {
        let copy = File::create_new(dir.join(format!("copy-{number}")))?;
        rustix::fs::ioctl_ficlone(&copy, &file)?;
        copy.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_third_of_the_small_files_are_copies_and_nearly_all_share_their_length() {
        let contents = contents(60_000, &SMALL);
        let mut lengths: BTreeMap<u64, usize> = BTreeMap::new();
        let mut copies: BTreeMap<(u64, bool), usize> = BTreeMap::new();
        for content in &contents {
            *lengths.entry(content.bytes).or_default() += 1;
            *copies.entry((content.seed, content.is_variant)).or_default() += 1;
        }
        assert!(lengths.keys().all(|bytes| (1..=16 << 10).contains(bytes)));
        let alone = lengths.values().filter(|files| **files == 1).count();
        assert!(alone < 60, "{alone}");
        let extra = contents.len() - copies.len();
        assert!((20_000..32_000).contains(&extra), "{extra}");
    }

    #[test]
    fn a_corpus_is_the_same_each_time() {
        let sizes = Sizes { small_files: 300, ..Sizes::default() };
        let read = |dir: &Path| {
            let mut files = BTreeMap::new();
            for number in 0..3 {
                for entry in fs::read_dir(directory(dir, number)).unwrap() {
                    let entry = entry.unwrap();
                    files.insert(entry.file_name(), fs::read(entry.path()).unwrap());
                }
            }
            files
        };
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        sizes.make(Corpus::Small, one.path()).unwrap();
        sizes.make(Corpus::Small, two.path()).unwrap();
        assert_eq!(read(one.path()).len(), 300);
        assert!(read(one.path()) == read(two.path()));
    }

    #[test]
    fn big_files_differ_where_they_should_and_nowhere_else() {
        let dir = tempfile::tempdir().unwrap();
        let sizes = Sizes { big_bytes: 16 << 20, ..Sizes::default() };
        sizes.make(Corpus::Middle, dir.path()).unwrap();
        let read = |number| fs::read(dir.path().join(format!("big-{number:02}"))).unwrap();
        let (one, two) = (read(3), read(4));
        let differ: Vec<_> = (0..one.len()).filter(|at| one[*at] != two[*at]).collect();
        let (first, last) = (differ[0], differ[differ.len() - 1]);
        assert!(one.len() == 1 << 20 && first > 490_000 && last < 560_000, "{first} {last}");
    }

    #[test]
    fn a_wrong_name_is_told_the_right_ones() {
        assert_eq!("big".parse(), Ok(Corpus::Big));
        assert!("bigger".parse::<Corpus>().unwrap_err().contains("small, middle"));
    }
}
