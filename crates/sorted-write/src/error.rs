//! Defines this crate's errors, each with the action that it requires from the caller.

use std::path::PathBuf;
use std::sync::Arc;

use haul_disk::error_chain;

/// The result of this crate's operations.
pub type Result<T> = std::result::Result<T, Error>;

/// The error of this crate's operations.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An earlier write or sync failed, so it is unknown whether the writes since the last barrier
    /// are durable. The writer accepts no further writes: open the files again.
    #[error("writing stopped after a failure: {}", error_chain(source))]
    Latched {
        /// The error of the write or sync.
        #[source]
        source: Arc<Error>,
    },
    /// An argument is invalid: correct the program.
    #[error("{0}")]
    Invalid(&'static str),
    /// The write is longer than the maximum: split it.
    #[error("a write of {bytes} bytes exceeds the maximum of {bytes_max}")]
    TooLong {
        /// The write length in bytes.
        bytes: u64,
        /// The maximum length in bytes.
        bytes_max: u64,
    },
    /// The log belongs to another file or has an unknown version. Use another directory, or the
    /// program that wrote the log.
    #[error("the log in {} cannot be used for this file: {what}", dir.display())]
    LogMismatch {
        /// The log directory.
        dir: PathBuf,
        /// The reason why the log cannot be used.
        what: String,
    },
    /// The page file is already open: wait until the process that holds its lock closes it.
    #[error("{} is in use by {holder}", path.display())]
    InUse {
        /// The locked file, or the directory of its log.
        path: PathBuf,
        /// The process that holds the lock, with its process id if known.
        holder: String,
    },
    /// A page file's or patch's log returned an error.
    #[error("the log of the page file: {}", error_chain(.0))]
    Log(#[source] haul_append_log::Error),
    /// A system call on a file failed.
    #[error(transparent)]
    Disk(#[from] haul_disk::Error),
}

impl From<haul_append_log::Error> for Error {
    fn from(error: haul_append_log::Error) -> Self {
        match error {
            haul_append_log::Error::InUse { dir, holder } => Self::InUse { path: dir, holder },
            other => Self::Log(other),
        }
    }
}

impl Error {
    /// `true` if the error was caused by a full disk, so that it can be resolved by freeing space.
    #[must_use]
    pub fn is_full(&self) -> bool {
        match self {
            Self::Latched { source } => source.is_full(),
            Self::Log(haul_append_log::Error::Full { .. }) => true,
            Self::Log(haul_append_log::Error::Disk(error)) | Self::Disk(error) => error.is_full(),
            Self::Log(haul_append_log::Error::Latched { source }) => source.is_full(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use haul_append_log::Error as LogError;
    use haul_disk::{Error as DiskError, Op};

    use super::*;

    #[test]
    fn every_error_names_its_innermost_cause() {
        let disk = || DiskError::new(Op::Sync, "/log/1", std::io::Error::other("the cause"));
        let from_log = |error: LogError| Error::from(error);
        let damaged =
            LogError::Damaged { file: "/log/1".into(), offset: 8, what: "the cause".into() };
        let in_use = LogError::InUse { dir: "/log".into(), holder: "the cause".into() };
        for error in [
            Error::Latched { source: Arc::new(Error::Disk(disk())) },
            Error::Latched {
                source: Arc::new(from_log(LogError::Latched { source: Arc::new(disk()) })),
            },
            Error::Invalid("the cause"),
            Error::LogMismatch { dir: "/log".into(), what: "the cause".into() },
            Error::InUse { path: "/file".into(), holder: "the cause".into() },
            from_log(damaged),
            from_log(in_use),
            from_log(LogError::Full { source: Arc::new(disk()) }),
            from_log(LogError::Disk(disk())),
            Error::Disk(disk()),
        ] {
            let text = error_chain(&error);
            assert_eq!(text.matches("the cause").count(), 1, "{text}");
            assert!(matches!(error, Error::Disk(_)) || error.to_string() == text, "{error}");
        }
    }
}
