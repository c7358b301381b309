//! Defines the errors of a single file or directory. No error stops a walk or a run of reads.

use std::path::PathBuf;
use std::sync::Arc;

/// The reason why a file or directory could not be listed or read.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A system call failed: for example, permission was denied, the file was removed after it was
    /// listed, or the device reported an I/O error.
    #[error("{}", message(.0))]
    Disk(Arc<haul_disk::Error>),
    /// Another process truncated the file during the read. Read the file again when no process is
    /// writing it.
    #[error(
        "{} was truncated while it was read: {opened_bytes} bytes when opened, now {end_bytes}; \
         read it again when it is not being written",
        path.display()
    )]
    Shrunk {
        /// The file.
        path: PathBuf,
        /// The length when the file was opened, in bytes.
        opened_bytes: u64,
        /// The length after the truncation, in bytes.
        end_bytes: u64,
    },
    /// The name no longer refers to a regular file. List its directory again.
    #[error("{} is no longer a regular file: list its directory again", path.display())]
    NotRegularFile {
        /// The path.
        path: PathBuf,
    },
    /// The run, that is, the call of `read`, was stopped before the file was read.
    #[error("{} was not read: the run was stopped", path.display())]
    Stopped {
        /// The file.
        path: PathBuf,
    },
    /// The tree is full: it holds at most 4 GiB of names. Walk fewer roots at a time.
    #[error(
        "{} is left out: the tree is full (4 GiB of names); walk fewer roots at a time",
        path.display()
    )]
    TreeFull {
        /// The path of the first file or directory that did not fit.
        path: PathBuf,
    },
    /// The digest cache file is corrupt, or was written by another version. The caller continues
    /// without cached digests, and replaces the file.
    #[error("cannot use the digest cache {}: {reason}; it is rebuilt", path.display())]
    Cache {
        /// The cache file.
        path: PathBuf,
        /// The defect.
        reason: &'static str,
    },
    /// The digest cache file has digests of another hash function. It is neither used nor replaced.
    #[error(
        "cannot use the digest cache {}: it is for another hash function; use another file",
        path.display()
    )]
    CacheHash {
        /// The cache file.
        path: PathBuf,
    },
}

/// Formats an I/O error with its source, because [`Error::Disk`] has no `source()` that could show
/// it.
fn message(error: &haul_disk::Error) -> String {
    format!("{error}: {}", error.source)
}

impl Error {
    /// `true` if the file or directory does not exist, or no longer exists.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Disk(error) if error.is_not_found())
    }

    /// Returns the path of the file or directory.
    #[must_use]
    pub fn path(&self) -> &std::path::Path {
        match self {
            Self::Disk(error) => &error.path,
            Self::Shrunk { path, .. }
            | Self::NotRegularFile { path }
            | Self::Stopped { path }
            | Self::TreeFull { path }
            | Self::Cache { path, .. }
            | Self::CacheHash { path } => path,
        }
    }
}

impl From<haul_disk::Error> for Error {
    fn from(error: haul_disk::Error) -> Self {
        Self::Disk(Arc::new(error))
    }
}
