//! The trait through which loading files into the page cache reports progress and errors.

use haul_disk::Error;

/// A receiver of the events of [`crate::Warmed::run`]. Several threads may call its methods at
/// once.
pub trait WarmEvents: Sync {
    /// Returns `true` if loading should stop: the files in progress are finished, and no others are
    /// started.
    fn is_stopped(&self) -> bool;

    /// Reports that reading of `files` files begins, `bytes` bytes in total.
    fn begin_reads(&self, files: u64, bytes: u64);

    /// Reports that the first `bytes` bytes of a file were read: the whole file, or the part that
    /// [`crate::WarmOptions::bytes_max`] allows.
    fn file_read(&self, bytes: u64);

    /// Reports that reading has ended.
    fn end_reads(&self);

    /// Reports that a file cannot be loaded. Loading continues with the next file.
    fn failed(&self, error: &Error);
}
