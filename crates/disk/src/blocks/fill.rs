//! Fills files with zeros ahead of use, so that later writes allocate no blocks.

use rustix::fs::fstat;

use crate::access::AlignedBuf;
use crate::disk::{Allocation, Durability, File, write_full};
use crate::error::{Error, Op, Result};
use crate::has_fd::path_of;

/// The number of bytes per write in [`fill`]: enough to keep the device busy with one write at a
/// time.
pub const FILL_STEP_BYTES: usize = 1 << 20;

/// How [`fill`] zeroed a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FillMethod {
    /// The file system and the device zeroed the range (`FALLOC_FL_WRITE_ZEROES`).
    WriteZeroes,
    /// The process wrote zeros.
    Write,
}

/// Writes zeros to a new file's first `bytes` bytes and syncs the file. Later writes in place then
/// change no metadata, so their syncs commit no journal.
///
/// # Errors
/// A full disk. If the file system can reserve space, this is detected before any zero is written.
///
/// # Durability
/// The zeros and the length are durable when this returns; the name is not (see
/// [`crate::Disk::sync_dir`]).
///
/// # Source
/// S. Weil, `RocksDB` pull request 746; the ext4 figures in the kernel's `FALLOC_FL_WRITE_ZEROES`
/// patch series.
pub fn fill(file: &dyn File, bytes: u64) -> Result<FillMethod> {
    let filled = fill_paced(file, bytes, &mut |_done| true)?;
    Ok(filled.unwrap_or(FillMethod::Write))
}

/// Fills a file as [`fill`] does, at a rate that the caller controls: before each step of
/// [`FILL_STEP_BYTES`], the function calls `proceed` with the number of bytes written so far.
/// `proceed` may wait; if it returns `false`, filling stops and the result is `None`. If the file
/// is open for direct I/O, each step has reached the device before the next call to `proceed`, so
/// filling is never faster than the device. `proceed` is never called if the device zeroes the
/// whole range at once.
///
/// # Errors
/// Fails like [`fill`].
///
/// # Durability
/// As for [`fill`]; none if `proceed` stopped the filling.
pub fn fill_paced(
    file: &dyn File,
    bytes: u64,
    proceed: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<FillMethod>> {
    let filled = if file.allocate(Allocation::WriteZeroes, 0, bytes).is_ok() {
        FillMethod::WriteZeroes
    } else {
        // Reserving first detects a full disk at once and keeps the blocks contiguous. If the file
        // system cannot reserve, the writes detect a full disk.
        if let Err(error) = file.allocate(Allocation::Reserve, 0, bytes)
            && error.is_full()
        {
            return Err(error);
        }
        let zeros = AlignedBuf::zeroed(FILL_STEP_BYTES);
        let mut done = 0;
        while done < bytes {
            if !proceed(done) {
                return Ok(None);
            }
            let rest = usize::try_from(bytes - done).unwrap_or(FILL_STEP_BYTES);
            let step = rest.min(FILL_STEP_BYTES);
            write_full(file, &zeros[..step], done)?;
            done += step as u64;
        }
        FillMethod::Write
    };
    file.sync(Durability::Everything)?;
    Ok(Some(filled))
}

/// `true` if a file has fewer blocks than its length needs, so that some in-place writes must
/// allocate blocks. `false` for simulated files.
///
/// # Errors
/// Fails if `fstat(2)` fails.
pub fn has_holes(file: &dyn File) -> Result<bool> {
    let Some(fd) = file.descriptor() else { return Ok(false) };
    let status = fstat(fd).map_err(|errno| Error::new(Op::Status, path_of(file), errno))?;
    // `st_blocks` counts 512-byte units regardless of the block size.
    Ok(status.st_blocks.saturating_mul(512) < status.st_size)
}
