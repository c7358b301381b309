//! What can go wrong with a log, told by what the caller should do about it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// The result of every operation of a log.
pub type Result<T> = std::result::Result<T, Error>;

/// Why the log refused or failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Look at the disk, make room on it. The lines are kept in memory, and writing them is tried
    /// again until the log is closed.
    #[error("{bytes} bytes of lines are in memory and cannot be written")]
    Stuck {
        /// How much waits in memory.
        bytes: u64,
        /// Why the last attempt failed.
        #[source]
        source: Arc<haul_disk::Error>,
    },
    /// Look at the disk. A sync failed, so lines written before it may be lost in a power cut. It
    /// is final for that file, which was closed as `.unsynced`; a new one was begun.
    #[error("a sync failed: lines written before it may not be on the medium")]
    Unsynced {
        /// The failure.
        #[source]
        source: Arc<haul_disk::Error>,
    },
    /// Correct the program: the log was closed before.
    #[error("the log is closed")]
    Closed,
    /// Wait for the other process to end, or choose another directory.
    #[error("{} is in use by {holder}", dir.display())]
    InUse {
        /// The directory.
        dir: PathBuf,
        /// What the other process says of itself.
        holder: String,
    },
    /// The caller's mistake; correct the call.
    #[error("{0}")]
    Invalid(&'static str),
    /// The kernel refused.
    #[error("{}", message(.0))]
    Disk(Arc<haul_disk::Error>),
}

/// The error and its reason: it stands in the place of the error, so nobody else would tell it.
fn message(error: &haul_disk::Error) -> String {
    format!("{error}: {}", error.source)
}

impl From<haul_disk::Error> for Error {
    fn from(error: haul_disk::Error) -> Self {
        Self::Disk(Arc::new(error))
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::Stuck { source, .. } | Error::Unsynced { source } | Error::Disk(source) => {
                source.source.kind()
            }
            Error::Closed => io::ErrorKind::BrokenPipe,
            Error::InUse { .. } => io::ErrorKind::ResourceBusy,
            Error::Invalid(_) => io::ErrorKind::InvalidInput,
        };
        Self::new(kind, error)
    }
}
