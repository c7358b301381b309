//! Writes many small files in a fresh tree, in which no file was ever replaced.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use haul_testing::Random;

use super::content::{Content, FILES_A_DIRECTORY, directory};

/// The possible lengths of small files, few enough that several files share each length.
pub(super) struct Lengths {
    step_bytes: u64,
    steps: u64,
}

pub(super) const SMALL: Lengths = Lengths { step_bytes: 32, steps: 512 };
pub(super) const SHORT: Lengths = Lengths { step_bytes: 1, steps: 256 };

/// Returns the contents of `files` small files. A third of the files are copies of an earlier file;
/// a quarter of the rest differ from an earlier file only in the last byte.
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
                // The minimum of two random numbers, so that short files are more frequent.
                let steps = random.below(lengths.steps).min(random.below(lengths.steps)) + 1;
                let bytes = steps * lengths.step_bytes;
                Content { seed: random.number(), bytes, is_variant: false }
            }
        });
    }
    contents
}

pub(super) fn write(dir: &Path, files: usize, lengths: &Lengths) -> io::Result<()> {
    let mut buffer = Vec::new();
    // Files are written in random order, as in a tree in use, so that the order of their blocks
    // differs from that of their names.
    let mut order: Vec<_> = contents(files, lengths).into_iter().enumerate().collect();
    let mut random = Random(7);
    for at in (1..order.len()).rev() {
        order.swap(at, usize::try_from(random.below(at as u64 + 1)).unwrap_or_default());
    }
    for number in 0..files.div_ceil(FILES_A_DIRECTORY) {
        fs::create_dir_all(directory(dir, number))?;
    }
    for (number, content) in order {
        content.write_into(&mut buffer);
        let name = format!("{:08x}", Random(number as u64).number() >> 32);
        let path = directory(dir, number / FILES_A_DIRECTORY).join(format!("{name}-{number}"));
        File::create_new(path)?.write_all(&buffer)?;
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
}
