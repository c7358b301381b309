//! Evicts the files below a directory from the page cache, and determines the space they take.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::log::Failure;
use crate::test_file::evict_all;

/// The bytes of the page cache that may stay after an eviction: an open store may write a page at
/// any time.
const LEFT_MAX: u64 = 1 << 20;
/// The length in bytes of a read that searches for blocks of zeros.
const CHUNK_BYTES: usize = 1 << 20;
const BLOCK_BYTES: usize = 4096;

/// The space that files take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Space {
    /// Bytes of the allocated blocks that hold data.
    pub(super) data_bytes: u64,
    /// Bytes of the allocated blocks of zeros, prepared for later writes.
    pub(super) prepared_bytes: u64,
}

/// Syncs the file systems, and evicts all files below `dir` from the page cache.
pub(crate) fn evict_below(dir: &Path) -> Result<(), Failure> {
    rustix::fs::sync();
    let open = |path: &PathBuf| File::open(path).map(OwnedFd::from);
    let files: Vec<_> = files_below(dir)?.iter().map(open).collect::<Result<_, _>>()?;
    Ok(evict_all(&files.iter().collect::<Vec<_>>(), LEFT_MAX)?)
}

/// Returns the space of all files below `dir`, which must not contain data of whole blocks of zeros:
/// a store prepares files for later writes with zeros.
pub(super) fn space_below(dir: &Path) -> Result<Space, Failure> {
    let mut space = Space::default();
    for path in files_below(dir)? {
        let file = File::open(&path)?;
        let allocated = file.metadata()?.blocks() * 512;
        let data = data_bytes(&file)?;
        space.data_bytes += data.min(allocated);
        space.prepared_bytes += allocated.saturating_sub(data);
    }
    Ok(space)
}

/// Returns the bytes of the blocks of a file that are not zero.
fn data_bytes(file: &File) -> Result<u64, Failure> {
    let (mut chunk, mut offset, mut blocks) = (vec![0; CHUNK_BYTES], 0, 0);
    loop {
        let bytes = file.read_at(&mut chunk, offset)?;
        if bytes == 0 {
            return Ok(blocks as u64 * BLOCK_BYTES as u64);
        }
        let is_data = |block: &&[u8]| block.iter().any(|byte| *byte != 0);
        blocks += chunk[..bytes].chunks(BLOCK_BYTES).filter(is_data).count();
        offset += bytes as u64;
    }
}

/// Returns the paths of all files below `dir`.
fn files_below(dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        match entry.file_type()? {
            kind if kind.is_dir() => files.extend(files_below(&entry.path())?),
            _ => files.push(entry.path()),
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_zeros_are_prepared_space() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        fs::create_dir(dir.path().join("below")).unwrap();
        let mut bytes = vec![0; 3 << 20];
        fs::write(dir.path().join("zeros"), &bytes).unwrap();
        bytes[1 << 20] = 1;
        fs::write(dir.path().join("below/volume"), &bytes).unwrap();
        rustix::fs::sync();
        let space = space_below(dir.path()).unwrap();
        let (data, all) = (4096, 6 << 20);
        assert_eq!(space, Space { data_bytes: data, prepared_bytes: all - data });
        evict_below(dir.path()).unwrap();
    }
}
