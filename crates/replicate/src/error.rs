//! A replica's errors, each with the action that the caller should take.

use haul_append_log::Lsn;
use haul_disk::error_chain;

/// The result of a replica operation.
pub type Result<T> = std::result::Result<T, Error>;

/// The error of a replica operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A request to the remote store failed after retries. The local log is unaffected. Check the
    /// address, the credentials and the network; shipping retries by itself.
    #[error("cannot {what} {name} in the remote store: {}", error_chain(source))]
    Remote {
        /// The action that failed.
        what: &'static str,
        /// The object's name.
        name: String,
        /// The request's error.
        #[source]
        source: Box<object_store::Error>,
    },
    /// Another process owns the copy: it replaced the manifest. This process must not acknowledge
    /// writes any more. Stop it, and restore the copy into an empty directory if this machine is to
    /// serve again.
    #[error("another process took over the copy ({what}); this one must not continue")]
    Fenced {
        /// The manifest that was found.
        what: String,
    },
    /// The remote store holds another log's copy. Use an empty prefix, or restore this copy into an
    /// empty directory.
    #[error("the remote store holds a copy that is not of this log: {what}")]
    NotThisLog {
        /// The difference that was found.
        what: String,
    },
    /// The remote store holds no copy. Check the address and the prefix.
    #[error("the remote store holds no copy: there is no object {name}")]
    NoCopy {
        /// The manifest's name.
        name: String,
    },
    /// The copy has no kept state from this time or before. Choose a later time.
    #[error("the copy has no state of that time or before")]
    NotKept {
        /// The oldest kept state's time, in milliseconds since 1970.
        oldest_ms: u64,
    },
    /// An object in the copy differs from what was stored, or is missing.
    #[error("damaged object {name} in the remote store: {what}")]
    Damaged {
        /// The object's name.
        name: String,
        /// The check that failed.
        what: String,
    },
    /// The copy was stopped before it contained the log up to this point.
    #[error("shipping stopped before the copy contained the log up to {end}")]
    Stopped {
        /// The log position that a caller waited for.
        end: Lsn,
    },
    /// An argument is invalid: correct the call.
    #[error("{0}")]
    Invalid(String),
    /// The local log could not be read.
    #[error(transparent)]
    Log(#[from] haul_append_log::Error),
    /// The local store could not be read.
    #[error(transparent)]
    Store(#[from] haul_file_store::Error),
    /// A system call on a local file failed.
    #[error(transparent)]
    Disk(#[from] haul_disk::Error),
}

impl Error {
    /// `true` if retrying cannot succeed: the caller must stop.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Fenced { .. } | Self::NotThisLog { .. })
    }
}
