//! Defines the errors of a log, each with the action that it requires from the caller.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use haul_disk::error_chain;

/// The result of every operation of a log.
pub type Result<T> = std::result::Result<T, Error>;

/// The error of an operation on a log.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A write failed: check the disk, or free space. The lines stay in memory, and the write is
    /// retried until the log is closed.
    #[error("cannot write {bytes} bytes of lines, they stay in memory: {}", error_chain(&**source))]
    WriteFailed {
        /// The number of bytes of lines in memory that are not written yet.
        bytes: u64,
        /// The error of the last attempt to write.
        #[source]
        source: Arc<haul_disk::Error>,
    },
    /// A sync failed: check the disk. A power cut may lose lines written before the sync. The
    /// failure is final for the file, which is closed with the suffix `.unsynced` and replaced by a
    /// new file.
    #[error("sync failed, lines written before it may not be durable: {}", error_chain(&**source))]
    SyncFailed {
        /// The error of the sync.
        #[source]
        source: Arc<haul_disk::Error>,
    },
    /// The log was closed before this call, or its background thread ended: correct the program.
    #[error("the log is closed")]
    Closed,
    /// The log in this directory is already open: wait until it is closed, or choose another
    /// directory.
    #[error("{} is in use by {holder}", dir.display())]
    InUse {
        /// The directory of the log.
        dir: PathBuf,
        /// The [`Options::holder`](crate::Options::holder) with which the log was opened.
        holder: String,
    },
    /// An argument or a call is invalid: correct the program.
    #[error("{0}")]
    Invalid(&'static str),
    /// A system call on the directory or a file failed.
    #[error("{}", error_chain(&**.0))]
    Disk(Arc<haul_disk::Error>),
}

impl From<haul_disk::Error> for Error {
    fn from(error: haul_disk::Error) -> Self {
        Self::Disk(Arc::new(error))
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::WriteFailed { source, .. }
            | Error::SyncFailed { source }
            | Error::Disk(source) => source.source.kind(),
            Error::Closed => io::ErrorKind::BrokenPipe,
            Error::InUse { .. } => io::ErrorKind::ResourceBusy,
            Error::Invalid(_) => io::ErrorKind::InvalidInput,
        };
        Self::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_contain_the_innermost_cause_once() {
        let disk = || {
            let cause = io::Error::other("the cause");
            Arc::new(haul_disk::Error::new(haul_disk::Op::Sync, "/log/1", cause))
        };
        for error in [
            Error::WriteFailed { bytes: 8, source: disk() },
            Error::SyncFailed { source: disk() },
            Error::Disk(disk()),
            Error::InUse { dir: "/log".into(), holder: "the cause".into() },
            Error::Invalid("the cause"),
        ] {
            assert_eq!(error.to_string().matches("the cause").count(), 1, "{error}");
            assert_eq!(error_chain(&error), error.to_string());
        }
    }
}
