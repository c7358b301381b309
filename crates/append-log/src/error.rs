//! What can go wrong with a log, told by what the caller should do about it.

use std::path::PathBuf;
use std::sync::Arc;

/// The result of every operation of a log.
pub type Result<T> = std::result::Result<T, Error>;

/// Why the log refused or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Free space, then try again. Nothing was appended, and the log still works.
    #[error("the log cannot get another segment")]
    Full {
        /// What the next segment could not be made with.
        #[source]
        source: Arc<haul_disk::Error>,
    },
    /// Close the log and open it again. An earlier write or sync failed, so what is on the medium
    /// is known only after recovery. Records not acknowledged may or may not be there.
    #[error("the log stopped after a failed write or sync")]
    Latched {
        /// The failure.
        #[source]
        source: Arc<haul_disk::Error>,
    },
    /// Restore these bytes from elsewhere: what the medium returned is not what was written.
    #[error("damaged bytes in {} at offset {offset}: {what}", file.display())]
    Damaged {
        /// The file holding them.
        file: PathBuf,
        /// Where in the file.
        offset: u64,
        /// What does not fit.
        what: String,
    },
    /// Use a version of this program that knows the format, or another directory.
    #[error("{} is not a segment this version can read: {what}", file.display())]
    Foreign {
        /// The file.
        file: PathBuf,
        /// Why not.
        what: String,
    },
    /// The record is longer than a segment can hold; write a shorter one.
    #[error("a record of {bytes} bytes is longer than the {bytes_max} a segment can hold")]
    TooLong {
        /// Its length.
        bytes: u64,
        /// The longest possible.
        bytes_max: u64,
    },
    /// The caller's mistake; correct the call.
    #[error("{0}")]
    Invalid(&'static str),
    /// The kernel refused.
    #[error(transparent)]
    Disk(#[from] haul_disk::Error),
}
