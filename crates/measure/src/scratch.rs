//! Creates the scratch file of a measurement, and the bytes written to it.

use std::sync::Arc;

use haul_disk::{AlignedBuf, Allocation, Durability, File, Open, OsDisk, PAGE_BYTES, write_full};
use rustix::fs::{OFlags, fcntl_getfl, statvfs};

use crate::error::{Error, Result};
use crate::options::{LONG_BYTES, Options};
use crate::random::Random;
use crate::watch::Watcher;

/// The minimum free space, as a multiple of the length of the scratch file: a measurement must not
/// fill a disk.
const FREE_MIN: u64 = 2;

/// An unnamed file of incompressible bytes.
#[derive(Debug)]
pub(crate) struct Scratch {
    pub(crate) disk: OsDisk,
    file: Arc<dyn File>,
    pub(crate) bytes: u64,
    /// `true` if the file uses direct I/O; `false` if the file system does not support it.
    pub(crate) is_direct: bool,
}

impl Scratch {
    pub(crate) fn new(options: &Options, watcher: &dyn Watcher) -> Result<Self> {
        let scratch = Self::empty(options)?;
        let mut block = noise(LONG_BYTES);
        for offset in (0..scratch.bytes).step_by(LONG_BYTES) {
            watcher.check()?;
            stamp(&mut block, offset);
            write_full(&*scratch.file, &block, offset)?;
        }
        scratch.file.sync(Durability::Everything)?;
        Ok(scratch)
    }

    /// Creates the file and reserves its blocks, without writing to it.
    pub(crate) fn empty(options: &Options) -> Result<Self> {
        let bytes = options.bytes.next_multiple_of(LONG_BYTES as u64).max(LONG_BYTES as u64);
        has_room(options, bytes)?;
        let disk = OsDisk::open(&options.dir)?;
        let file = disk.unnamed(Open { direct: true, ..Open::default() })?;
        let is_direct = file
            .descriptor()
            .is_some_and(|fd| fcntl_getfl(fd).is_ok_and(|flags| flags.contains(OFlags::DIRECT)));
        // Reserving keeps the blocks contiguous on file systems that can reserve blocks. An error
        // is ignored, because the measurement also works without reserved blocks.
        drop(file.allocate(Allocation::Reserve, 0, bytes));
        Ok(Self { disk, file, bytes, is_direct })
    }

    /// Reopens the file with other flags.
    pub(crate) fn open(&self, how: Open) -> Result<Arc<dyn File>> {
        Ok(self.disk.reopen(&*self.file, how)?)
    }
}

/// Returns a buffer of `bytes` pseudo-random bytes, which no device can compress.
#[must_use]
pub fn noise(bytes: usize) -> AlignedBuf {
    let mut block = AlignedBuf::zeroed(bytes);
    let mut random = Random::new(bytes as u64);
    for word in block.chunks_exact_mut(8) {
        word.copy_from_slice(&random.next().to_le_bytes());
    }
    block
}

/// Writes into each page of `block` the page's offset in the file, so that no device deduplicates
/// equal pages. `offset` is the offset of the block in bytes.
pub fn stamp(block: &mut [u8], offset: u64) {
    for (page, bytes) in (0_u64..).zip(block.chunks_exact_mut(PAGE_BYTES)) {
        let number = offset + page * PAGE_BYTES as u64;
        bytes[..8].copy_from_slice(&number.to_le_bytes());
    }
}

fn has_room(options: &Options, bytes: u64) -> Result<()> {
    let dir = &options.dir;
    let status =
        statvfs(dir).map_err(Error::other(format!("get the free space of {}", dir.display())))?;
    let free = status.f_bavail.saturating_mul(status.f_frsize);
    if free >= bytes.saturating_mul(FREE_MIN) {
        return Ok(());
    }
    Err(Error::Missing(format!(
        "{} has {} MiB free: a scratch file of {} MiB needs twice its size free",
        dir.display(),
        free >> 20,
        bytes >> 20
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Silent;

    #[test]
    fn pages_are_unique() {
        let mut blocks = [noise(LONG_BYTES), noise(LONG_BYTES)];
        stamp(&mut blocks[0], 0);
        stamp(&mut blocks[1], LONG_BYTES as u64);
        let mut pages: Vec<_> = blocks.iter().flat_map(|block| block.chunks(PAGE_BYTES)).collect();
        pages.sort_unstable();
        pages.dedup();
        assert_eq!(pages.len(), 2 * LONG_BYTES / PAGE_BYTES);
    }

    #[test]
    fn scratch_file_is_unnamed_and_needs_twice_its_size() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let options = Options { bytes: 3 << 20, ..Options::new(dir.path()) };
        let scratch = Scratch::new(&options, &Silent).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert_eq!(scratch.open(Open::default()).unwrap().bytes().unwrap(), 3 << 20);
        let why = Scratch::new(&Options { bytes: 1 << 60, ..options }, &Silent).unwrap_err();
        assert!(why.to_string().contains("needs twice its size"), "{why}");
    }
}
