//! Decides how much memory a writer's generations take.

use haul_disk::KernelFiles;

use crate::options::Options;

/// A generation's minimum memory in bytes, unless the options set another.
const GENERATION_BYTES_MIN: usize = 64 << 20;

/// Returns each generation's memory, in bytes.
///
/// A round seeks to all parts of the file, so few large rounds take less time than many small ones,
/// and a large generation absorbs overwrites. The kernel does the same with dirty pages, up to a
/// fifth of the memory; both generations together may take a quarter of the available memory.
pub(crate) fn generation_bytes(options: &Options) -> usize {
    options.generation_bytes.unwrap_or_else(|| {
        let eighth = KernelFiles::default().machine().available_bytes().unwrap_or(0) / 8;
        usize::try_from(eighth).unwrap_or(usize::MAX).max(GENERATION_BYTES_MIN)
    })
}
