//! Defines the events that a search reports to its caller.

use std::path::Path;

use haul_bulk_read::SkipReason;

use crate::error::Error;

/// A phase of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Walking the directories.
    Walking,
    /// Reading small files completely, and the first samples of larger files.
    Sampling,
    /// Reading further pieces of the files that equal another file in all pieces read so far.
    Reading,
    /// Running the transform command on each file.
    Transforming,
    /// Computing the digests of all blocks, to share equal blocks.
    Hashing,
    /// Sharing equal blocks.
    Sharing,
}

/// A receiver of the events of a search, called from several threads.
pub trait Events: Sync {
    /// Reports that a file or directory was excluded, or that the cache is unusable. The search
    /// continues.
    fn failed(&self, error: Error);

    /// Reports that a phase starts, with its number of items (files or reads) and of bytes. A
    /// number is 0 if it is unknown.
    fn phase(&self, _phase: Phase, _items: u64, _bytes: u64) {}

    /// Reports the number of items and bytes of the current phase done so far.
    fn progress(&self, _items: u64, _bytes: u64) {}

    /// Reports that the walk skipped an entry.
    fn skipped(&self, _path: &Path, _reason: SkipReason) {}
}
