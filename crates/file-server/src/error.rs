//! Errors of starting and running a server.

use std::io;
use std::path::PathBuf;

/// The result of starting or running a server.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error that prevents a server from starting, or ends it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The directory to serve cannot be opened.
    #[error("cannot open the directory {}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The error of the kernel.
        source: io::Error,
    },
    /// An address to listen on is public and has no TLS, and [`Config::is_public`](crate::Config) is
    /// not set.
    #[error(
        "refusing to serve plain HTTP on {address}: other machines can reach it, and the network \
             can read all responses; use TLS, allow plain HTTP or listen on 127.0.0.1"
    )]
    Public {
        /// The address.
        address: String,
    },
    /// A setting is invalid; the message names it.
    #[error("{0}")]
    Invalid(&'static str),
    /// An address cannot be listened on: choose another, or stop the process that uses it.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: String,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The kernel refused to wait for sockets.
    #[error("cannot wait for sockets")]
    Poll(#[source] io::Error),
    /// The kernel refused a thread.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
}
