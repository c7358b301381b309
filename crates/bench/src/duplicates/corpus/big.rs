//! Writes the corpora of big files; all files of a corpus have the same length.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use haul_testing::Random;

use super::content::fill;

const PAGE_BYTES: u64 = 4096;

/// A range of a big file whose bytes differ between the files of the corpus.
pub(super) struct Range {
    at: u64,
    bytes: u64,
    number: u64,
}

fn whole_pages(bytes: u64) -> u64 {
    bytes / PAGE_BYTES * PAGE_BYTES
}

/// Returns the middle sixteenth of a file of `bytes` bytes.
pub(super) fn in_the_middle(bytes: u64, number: u64) -> Range {
    Range { at: whole_pages(bytes / 2 - bytes / 32), bytes: whole_pages(bytes / 16), number }
}

/// Returns a pseudo-random page of a file of `bytes` bytes.
pub(super) fn somewhere(bytes: u64, number: u64) -> Range {
    let page = Random(number + 1).below((bytes / PAGE_BYTES).max(1));
    Range { at: page * PAGE_BYTES, bytes: PAGE_BYTES, number }
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

pub(super) fn differing(dir: &Path, all: u64, range: fn(u64, u64) -> Range) -> io::Result<()> {
    let bytes = big_file_bytes(all);
    for number in 0..BIG_FILES {
        let file = write_big(&dir.join(format!("big-{number:02}")), 1, bytes)?;
        let Range { at, bytes, number } = range(bytes, number);
        let mut other = vec![0; usize::try_from(bytes).map_err(io::Error::other)?];
        fill(&mut other, 100 + number);
        file.write_all_at(&other, at)?;
    }
    Ok(())
}

pub(super) fn twice(dir: &Path, all_bytes: u64) -> io::Result<()> {
    for number in 0..BIG_FILES {
        let name = format!("big-{number:02}");
        write_big(&dir.join(name), number / 2, big_file_bytes(all_bytes))?;
    }
    Ok(())
}

/// Writes a file of a sixteenth of `all_bytes`, and seven reflinks: files that share its blocks.
pub(super) fn reflinks(dir: &Path, all_bytes: u64) -> io::Result<()> {
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
    use std::fs;

    use super::super::{Corpus, Sizes};

    #[test]
    fn big_files_differ_in_the_middle_only() {
        let dir = tempfile::tempdir().unwrap();
        let sizes = Sizes { big_bytes: 16 << 20, ..Sizes::default() };
        sizes.write(Corpus::Middle, dir.path()).unwrap();
        let read = |number| fs::read(dir.path().join(format!("big-{number:02}"))).unwrap();
        let (one, two) = (read(3), read(4));
        let differ: Vec<_> = (0..one.len()).filter(|at| one[*at] != two[*at]).collect();
        let (first, last) = (differ[0], differ[differ.len() - 1]);
        assert!(one.len() == 1 << 20 && first > 490_000 && last < 560_000, "{first} {last}");
    }
}
