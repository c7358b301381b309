//! Why a relay does not start, or stops.

use std::io;

/// The result of starting or running a relay.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a relay failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The owner's mistake; correct the configuration.
    #[error("{0}")]
    Invalid(&'static str),
    /// Nothing can be accepted there: choose another address, or end who has it.
    #[error("cannot listen on {address}")]
    Listen {
        /// Where.
        address: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The kernel refused a thread or what a thread needs.
    #[error("cannot start a thread of the relay")]
    Start(#[source] io::Error),
    /// A thread cannot wait for its sockets any more.
    #[error("a thread of the relay failed")]
    Run(#[source] io::Error),
}
