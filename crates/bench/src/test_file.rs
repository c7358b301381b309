//! Creates the file that benchmarks of reads use; each page begins with its offset, so that every
//! read can be verified.

use std::fs::File as StdFile;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use haul_disk::{
    AlignedBuf, DeviceCounters, DirectIo, Disk, Durability, File, HasFd, Open, OsDisk, PAGE_BYTES,
    Storage, evict, probe, read_full, resident, write_full,
};

use haul_measure::{Error, Result, Watcher};

use crate::guardian::Guardian;

/// The reason why direct reads are not measured.
pub(crate) const NO_DIRECT_IO: &str = "no direct I/O here";

const NAME: &str = "data";
const CHUNK_BYTES: usize = 1 << 20;
/// The maximum number of attempts to evict the file from the page cache, 20 ms apart.
const EVICTIONS_MAX: usize = 100;

/// A test file in a directory created for it. The file and the directory are removed on drop, and
/// when the process ends.
#[derive(Debug)]
pub(crate) struct TestFile {
    pub(crate) storage: Storage,
    pub(crate) bytes: u64,
    disk: OsDisk,
    path: PathBuf,
    _guardian: Guardian,
}

impl TestFile {
    /// Creates the file in a new directory in `dir`, writes it durably and evicts it from the page
    /// cache.
    pub(crate) fn new(dir: &Path, bytes: u64, watcher: &dyn Watcher) -> Result<Self> {
        watcher.step(0, 1, "writing the test file");
        let storage = probe(dir)?;
        let (path, guardian) = Guardian::for_tree(dir, "haul-bench")?;
        let disk = OsDisk::open(&path)?;
        let file = disk.create(NAME, Open::default())?;
        fill(&*file, bytes, watcher, stamp)?;
        disk.sync_dir("")?;
        evict(&*file, 0, u64::MAX)?;
        Ok(Self { storage, bytes, disk, path: path.join(NAME), _guardian: guardian })
    }

    /// Opens the file for reading.
    pub(crate) fn open(&self, flags: Open) -> Result<Arc<dyn File>> {
        Ok(self.disk.open(NAME, Open { read_only: true, ..flags })?)
    }

    /// Opens the file for `lseek` and `read`, which use the file offset of the returned descriptor.
    pub(crate) fn open_seekable(&self, direct: bool) -> Result<StdFile> {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = if direct { rustix::fs::OFlags::DIRECT } else { rustix::fs::OFlags::empty() };
        StdFile::options()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(&self.path)
            .map_err(Error::other(format!("open {}", self.path.display())))
    }

    /// Returns `true` if the storage supports direct reads of `bytes` bytes, or if that is unknown.
    pub(crate) fn is_direct(&self, bytes: u64) -> bool {
        match self.storage.direct_io {
            Some(DirectIo::Aligned { memory_bytes, offset_bytes }) => {
                memory_bytes <= PAGE_BYTES as u64 && bytes.is_multiple_of(offset_bytes)
            }
            Some(DirectIo::Unsupported) => false,
            None => true,
        }
    }

    /// Runs `body`; returns its result and the number of read requests that the device has received
    /// from all programs in the meantime.
    pub(crate) fn count_reads<T>(
        &self,
        body: impl FnOnce() -> Result<T>,
    ) -> Result<(T, Option<u64>)> {
        let counters = || DeviceCounters::of(self.storage.device.as_ref()?).ok();
        let before = counters();
        let done = body()?;
        Ok((done, counters().zip(before).map(|(after, before)| after.since(&before).reads)))
    }

    /// Reads the first `bytes` bytes once through the page cache.
    pub(crate) fn read_through_cache(&self, bytes: u64, watcher: &dyn Watcher) -> Result<()> {
        let file = self.open(Open::default())?;
        let mut chunk = AlignedBuf::zeroed(CHUNK_BYTES);
        let mut at = 0;
        while at < bytes {
            watcher.check()?;
            at += read_full(&*file, &mut chunk, at)? as u64;
        }
        Ok(())
    }

    /// Returns the fraction of the file that is in the page cache, from 0 to 1.
    pub(crate) fn in_memory(&self) -> Result<f64> {
        let file = self.open(Open::default())?;
        Ok(resident(&*file, 0, u64::MAX)?.resident_bytes as f64 / self.bytes as f64)
    }

    /// Evicts the file from the page cache.
    pub(crate) fn make_cold(&self) -> Result<()> {
        let file = self.open(Open::default())?;
        evict_until(0, || evict_one(&*file))
    }
}

/// Evicts a file from the page cache; returns the number of bytes that stay.
pub(crate) fn evict_one<F: HasFd + ?Sized>(file: &F) -> Result<u64> {
    evict(file, 0, u64::MAX)?;
    Ok(resident(file, 0, u64::MAX)?.resident_bytes)
}

/// Calls `evict_all`, which evicts files and returns the number of bytes that stay in the page
/// cache, until at most `left_max` bytes stay.
pub(crate) fn evict_until(left_max: u64, mut evict_all: impl FnMut() -> Result<u64>) -> Result<()> {
    let mut left = 0;
    // Pages of an unfinished readahead cannot be evicted yet, so this retries.
    for _ in 0..EVICTIONS_MAX {
        left = evict_all()?;
        if left <= left_max {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(20));
    }
    let why = io::Error::other(format!("{left} bytes stay"));
    Err(Error::other("empty the page cache of the files")(why))
}

/// Writes the first `bytes` bytes of a file, in chunks that `stamp` fills, and syncs them.
pub(crate) fn fill(
    file: &dyn File,
    bytes: u64,
    watcher: &dyn Watcher,
    stamp: impl Fn(&mut [u8], u64),
) -> Result<()> {
    let mut chunk = AlignedBuf::zeroed(CHUNK_BYTES);
    for at in (0..bytes).step_by(CHUNK_BYTES) {
        watcher.check()?;
        stamp(&mut chunk, at);
        let length = usize::try_from(bytes - at).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
        write_full(file, &chunk[..length], at)?;
    }
    Ok(file.sync(Durability::Everything)?)
}

/// Writes the offset of each page into the page, followed by bytes that compress badly.
pub(crate) fn stamp(chunk: &mut [u8], offset: u64) {
    for (number, page) in (0u64..).zip(chunk.chunks_mut(PAGE_BYTES)) {
        let at = offset + number * PAGE_BYTES as u64;
        let mut word = at;
        for bytes in page.chunks_mut(8) {
            bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
            word = (word ^ (word >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9).wrapping_add(1);
        }
    }
}

/// Returns an error unless `buffer`, read at `offset`, begins with the stamp of the page at
/// `offset`.
pub(crate) fn check(buffer: &[u8], offset: u64) -> Result<()> {
    let found = buffer.first_chunk().copied().map(u64::from_le_bytes);
    if found == Some(offset) {
        return Ok(());
    }
    let why = format!("the page at offset {offset} has the stamp {found:?}");
    Err(Error::other("verify the bytes read")(io::Error::other(why)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_is_stamped_with_its_offset() {
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
