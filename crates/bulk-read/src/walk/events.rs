//! Defines the events that a walk reports to its caller.

use std::path::Path;

use crate::error::Error;

/// The reason why an entry was skipped, apart from the options of the walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkipReason {
    /// The entry is a pipe, socket or device; the walk never opens one.
    NotRegularFile,
    /// The walk already visited this directory or root by another path: through a bind mount, a
    /// link to a parent directory, or because a root was given twice.
    AlreadyVisited,
    /// The target of a symbolic link does not exist, or the link leads back to itself. Reported
    /// with [`WalkOptions::follow_links`](super::WalkOptions::follow_links) or
    /// [`WalkOptions::report_links`](super::WalkOptions::report_links).
    DanglingLink,
    /// The length that the file system reports is not that of the content, as in `/proc` and
    /// `/sys`. Not reported by the walk, but by programs that rely on lengths.
    LengthUnknown,
}

/// A receiver of the events of a walk, called from several threads.
pub trait WalkEvents: Sync {
    /// Reports that a file or directory could not be listed. The walk continues.
    fn failed(&self, error: Error);

    /// Reports that an entry was skipped for a reason other than the options.
    fn skipped(&self, _path: &Path, _reason: SkipReason) {}

    /// Reports the number and the total length in bytes of the files found so far. The walk calls
    /// it periodically.
    fn progress(&self, _files: u64, _bytes: u64) {}
}
