//! The events of loading files into the page cache.

use haul_disk::Error;

/// A receiver of the events of [`crate::Warmed::run`]. Several threads may call its methods at
/// once.
pub trait WarmEvents: Sync {
    /// Returns `true` if loading should end after the files in progress.
    fn is_stopped(&self) -> bool;

    /// Reports that reading begins, of `files` files and `bytes` bytes in all.
    fn begin_reads(&self, files: u64, bytes: u64);

    /// Reports that the first `bytes` bytes of a file were read, the planned part of it.
    fn file_read(&self, bytes: u64);

    /// Reports that reading has ended.
    fn end_reads(&self);

    /// Reports that a file cannot be loaded. Loading continues with the next file.
    fn failed(&self, error: &Error);
}
