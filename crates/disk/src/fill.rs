//! Blocks that are really written before they are needed.

use crate::buffer::AlignedBuf;
use crate::error::Result;
use crate::file::{Allocation, Durability, File, write_full};

/// How much is written at a time: large enough for the device, small enough for memory.
const FILL_BYTES: usize = 1 << 20;

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
        let zeros = AlignedBuf::zeroed(FILL_BYTES);
        let mut offset = 0;
        while offset < bytes {
            let step = usize::try_from(bytes - offset).map_or(FILL_BYTES, |n| n.min(FILL_BYTES));
            write_full(file, &zeros[..step], offset)?;
            offset += step as u64;
        }
        Filled::ByHand
    };
    file.sync(Durability::Everything)?;
    Ok(filled)
}
