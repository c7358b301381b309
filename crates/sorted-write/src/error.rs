//! What can go wrong, told by what the caller should do about it.

use std::path::PathBuf;
use std::sync::Arc;

/// The result of every operation here.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a write, a read or a barrier was refused or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Open the files again. An earlier write or sync failed, so of what was written since the
    /// last barrier nobody knows how much is on the medium. Nothing more is accepted.
    #[error("writing stopped after a failure")]
    Latched {
        /// The failure.
        #[source]
        source: Arc<Error>,
    },
    /// The caller's mistake; correct the call.
    #[error("{0}")]
    Invalid(&'static str),
    /// The write is longer than one may be; write it in parts.
    #[error("a write of {bytes} bytes is longer than the {bytes_max} that one may have")]
    TooLong {
        /// Its length.
        bytes: u64,
        /// The longest possible.
        bytes_max: u64,
    },
    /// The log of a page file belongs to something else, or is of another version; name another
    /// directory, or use the program that wrote it.
    #[error("the log in {} is not one this version can use for this file: {what}", dir.display())]
    Foreign {
        /// The directory of the log.
        dir: PathBuf,
        /// Why not.
        what: String,
    },
    /// The log of a page file refused or failed.
    #[error("the log of the page file")]
    Log(#[from] haul_append_log::Error),
    /// The kernel refused.
    #[error(transparent)]
    Disk(#[from] haul_disk::Error),
}

impl Error {
    /// Whether the medium is full: freeing space helps.
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
