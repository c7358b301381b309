//! One long file to be read, every page of which says where it is.

use std::fs::File as StdFile;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use haul_disk::{
    AlignedBuf, DirectIo, Disk, Durability, File, Open, OsDisk, PAGE_BYTES, Storage, evict, probe,
    resident, write_full,
};

use crate::error::{Error, Result};
use crate::guardian::Guardian;
use crate::watch::Watcher;

const NAME: &str = "data";
const CHUNK_BYTES: usize = 1 << 20;
/// How often it is tried to put the file out of memory, 20 ms apart.
const EVICTIONS_MAX: usize = 100;

/// The file, in a directory of its own, both of which are gone with this or with the process.
#[derive(Debug)]
pub(crate) struct TestFile {
    pub(crate) storage: Storage,
    pub(crate) bytes: u64,
    disk: OsDisk,
    path: PathBuf,
    _guardian: Guardian,
}

impl TestFile {
    /// Makes it in `dir`, on the medium and out of memory, as far as `dir` has a medium.
    pub(crate) fn new(dir: &Path, bytes: u64, watcher: &dyn Watcher) -> Result<Self> {
        let storage = probe(dir)?;
        let own = format!("haul-bench-{}", std::process::id());
        let guardian = Guardian::of(dir, &own, &[NAME])?;
        let path = dir.join(&own);
        std::fs::create_dir(&path)
            .map_err(Error::other(format!("make the directory {}", path.display())))?;
        let disk = OsDisk::open(&path)?;
        let file = disk.create(NAME, Open::default())?;
        let mut chunk = AlignedBuf::zeroed(CHUNK_BYTES);
        let mut at = 0;
        while at < bytes {
            watcher.check()?;
            stamp(&mut chunk, at);
            let length = usize::try_from(bytes - at).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
            write_full(&*file, &chunk[..length], at)?;
            at += length as u64;
        }
        file.sync(Durability::Data)?;
        disk.sync_dir("")?;
        evict(&*file, 0, u64::MAX)?;
        Ok(Self { storage, bytes, disk, path: path.join(NAME), _guardian: guardian })
    }

    /// Another descriptor of it.
    pub(crate) fn open(&self, how: Open) -> Result<Arc<dyn File>> {
        Ok(self.disk.open(NAME, how)?)
    }

    /// One that has a place it stands at.
    pub(crate) fn open_with_place(&self, direct: bool) -> Result<StdFile> {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = if direct { rustix::fs::OFlags::DIRECT } else { rustix::fs::OFlags::empty() };
        StdFile::options()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(&self.path)
            .map_err(Error::other(format!("open {}", self.path.display())))
    }

    /// Whether it can be read past the page cache in pieces of `bytes`.
    pub(crate) fn is_direct(&self, bytes: u64) -> bool {
        match self.storage.direct_io {
            Some(DirectIo::Aligned { memory_bytes, offset_bytes }) => {
                memory_bytes <= PAGE_BYTES as u64 && bytes.is_multiple_of(offset_bytes)
            }
            Some(DirectIo::Unsupported) => false,
            None => true,
        }
    }

    /// How much of it is in memory.
    pub(crate) fn in_memory(&self) -> Result<f64> {
        let file = self.open(Open { read_only: true, ..Open::default() })?;
        Ok(resident(&*file, 0, u64::MAX)?.resident_bytes as f64 / self.bytes as f64)
    }

    /// Takes all of it out of memory.
    pub(crate) fn make_cold(&self) -> Result<()> {
        let file = self.open(Open { read_only: true, ..Open::default() })?;
        let mut left = 1.0;
        // What the kernel still reads ahead for somebody who has ended cannot be put out yet.
        for _ in 0..EVICTIONS_MAX {
            evict(&*file, 0, u64::MAX)?;
            left = self.in_memory()?;
            if left == 0.0 {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(20));
        }
        let why = io::Error::other(format!("{:.1} % of it stay", left * 100.0));
        Err(Error::other("empty the page cache of the file")(why))
    }
}

/// Writes into each page where it is, and something that compresses badly behind.
fn stamp(chunk: &mut [u8], offset: u64) {
    for (number, page) in (0u64..).zip(chunk.chunks_mut(PAGE_BYTES)) {
        let at = offset + number * PAGE_BYTES as u64;
        let mut word = at;
        for bytes in page.chunks_mut(8) {
            bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
            word = (word ^ (word >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9).wrapping_add(1);
        }
    }
}

/// Whether a buffer that was read at `offset`, a whole number of pages, has what is there.
pub(crate) fn check(buffer: &[u8], offset: u64) -> Result<()> {
    let found = buffer.first_chunk().copied().map(u64::from_le_bytes);
    if found == Some(offset) {
        return Ok(());
    }
    let why = format!("at {offset} there was {found:?}");
    Err(Error::other("trust what was read")(io::Error::other(why)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_says_where_it_is() {
        let mut chunk = vec![0; 3 * PAGE_BYTES];
        stamp(&mut chunk, 8192);
        for (page, at) in chunk.chunks(PAGE_BYTES).zip([8192, 12288, 16384]) {
            check(page, at).unwrap();
            assert!(check(page, at + 4096).is_err());
            assert!(page[8..].iter().filter(|byte| **byte == 0).count() < 100);
        }
        assert!(check(&[], 0).is_err());
    }
}
