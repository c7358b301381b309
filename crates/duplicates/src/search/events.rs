//! Events of a search.

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
    /// Reading more of the files that are equal to another one in all pieces read so far.
    Reading,
    /// Running the transform command on each file.
    Transforming,
}

/// A receiver of the events of a search, called from several threads.
pub trait Events: Sync {
    /// Reports that a file or directory was excluded, or that the cache is unusable. The search
    /// continues.
    fn failed(&self, error: Error);

    /// Reports that a phase starts, with its number of items and of bytes; 0 if the number is
    /// unknown.
    fn phase(&self, _phase: Phase, _items: u64, _bytes: u64) {}

    /// Reports the number of items and bytes of the current phase done so far.
    fn progress(&self, _items: u64, _bytes: u64) {}

    /// Reports that the walk skipped an entry.
    fn skipped(&self, _path: &Path, _reason: SkipReason) {}
}
