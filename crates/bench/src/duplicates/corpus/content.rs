//! Generates the contents of a corpus's files, and the paths of their directories.

use std::path::{Path, PathBuf};

use haul_testing::Random;

/// The number of files in a directory.
pub(super) const FILES_A_DIRECTORY: usize = 100;

/// Returns the path of the directory with the number `number`.
pub(super) fn directory(dir: &Path, number: usize) -> PathBuf {
    dir.join(format!("{:02}", number / 100)).join(format!("{:02}", number % 100))
}

/// The content of a file, which is generated from a seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) seed: u64,
    pub(super) bytes: u64,
    /// `true` if the last byte is changed. The file then differs only in this byte from files with
    /// the same seed.
    pub(super) is_variant: bool,
}

impl Content {
    /// Replaces the bytes in `buffer` with the content.
    pub(super) fn write_into(self, buffer: &mut Vec<u8>) {
        buffer.resize(usize::try_from(self.bytes).unwrap_or_default(), 0);
        fill(buffer, self.seed);
        if let (true, Some(last)) = (self.is_variant, buffer.last_mut()) {
            *last ^= 1;
        }
    }
}

/// Fills `bytes` with pseudo-random bytes that depend on the seed.
pub(super) fn fill(bytes: &mut [u8], seed: u64) {
    let mut random = Random(seed);
    for piece in bytes.chunks_mut(8) {
        piece.copy_from_slice(&random.number().to_le_bytes()[..piece.len()]);
    }
}
