//! Why a server does not start, or ends.

use std::io;
use std::path::PathBuf;

/// The result of what can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a server does not start, or ends.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The directory to serve cannot be opened.
    #[error("cannot open the directory {}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
    /// An address to listen on is open to others, and that was not asked for.
    #[error(
        "{address} can be reached by others, and everything below the directory is served \
             without asking who it is"
    )]
    Public {
        /// The address.
        address: String,
    },
    /// What was configured cannot work.
    #[error("{0}")]
    Invalid(&'static str),
    /// An address cannot be listened at.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: String,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The kernel does not say any more which sockets are ready.
    #[error("cannot wait for sockets")]
    Poll(#[source] io::Error),
    /// A thread cannot be started.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
}
