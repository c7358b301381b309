//! Blocks that are really written before they are needed.

use rustix::fs::fstat;

use crate::buffer::AlignedBuf;
use crate::error::{Error, Op, Result};
use crate::file::{Allocation, Durability, File, write_full};
use crate::has_fd::path_of;

/// How much is written at a time: large enough for the device, small enough for memory.
pub const FILL_STEP_BYTES: usize = 1 << 20;

/// How a range came to be filled with zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filled {
    /// The device zeroed it (`FALLOC_FL_WRITE_ZEROES`).
    ByDevice,
    /// We wrote the zeros.
    ByHand,
}

/// Fills the first `bytes` of a new file with real zeros and syncs it, so that later writes in
/// place change no metadata and their sync commits no journal.
///
/// # Errors
/// A full disk, found before any zero is written where the file system can reserve.
///
/// # Durability
/// The zeros and the length are on the medium when this returns; the name is not (see
/// [`crate::Disk::sync_dir`]).
///
/// # Source
/// S. Weil, `RocksDB` pull request 746; the ext4 figures in the `FALLOC_FL_WRITE_ZEROES` series.
pub fn fill(file: &dyn File, bytes: u64) -> Result<Filled> {
    let filled = fill_paced(file, bytes, &mut |_done| true)?;
    Ok(filled.unwrap_or(Filled::ByHand))
}

/// As [`fill`], at somebody's pace: before each step of [`FILL_STEP_BYTES`] `go_on` is told how
/// many bytes are done, and may wait; its `false` ends the work, with `None`. Through a direct
/// file each step is with the device when the next is asked for, so that the pace is the
/// device's too.
///
/// # Errors
/// As [`fill`].
///
/// # Durability
/// As [`fill`], unless it was ended: then none.
pub fn fill_paced(
    file: &dyn File,
    bytes: u64,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<Filled>> {
    let filled = if file.allocate(Allocation::WriteZeroes, 0, bytes).is_ok() {
        Filled::ByDevice
    } else {
        // Reserving first finds a full disk at once and keeps the blocks together. Where it is
        // not supported, writing will find out.
        if let Err(error) = file.allocate(Allocation::Reserve, 0, bytes)
            && error.is_full()
        {
            return Err(error);
        }
        let zeros = AlignedBuf::zeroed(FILL_STEP_BYTES);
        let mut done = 0;
        while done < bytes {
            if !go_on(done) {
                return Ok(None);
            }
            let rest = usize::try_from(bytes - done).unwrap_or(FILL_STEP_BYTES);
            let step = rest.min(FILL_STEP_BYTES);
            write_full(file, &zeros[..step], done)?;
            done += step as u64;
        }
        Filled::ByHand
    };
    file.sync(Durability::Everything)?;
    Ok(Some(filled))
}

/// Whether a file has fewer blocks than its length needs: writing to it in place would still
/// have to find some. A simulated file has none missing.
///
/// # Errors
/// As the kernel says.
pub fn has_holes(file: &dyn File) -> Result<bool> {
    let Some(fd) = file.descriptor() else { return Ok(false) };
    let status = fstat(fd).map_err(|errno| Error::new(Op::Status, path_of(file), errno))?;
    // The unit of `st_blocks`, whatever the file system calls a block.
    Ok(status.st_blocks.saturating_mul(512) < status.st_size)
}
