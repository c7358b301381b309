//! Why a server could not start or had to stop.

use std::io;
use std::net::SocketAddr;

/// The result of starting and running a server.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a server could not start or had to stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Listen on 127.0.0.1, or give credentials.
    #[error(
        "refusing to listen on {address} without credentials: anyone who reaches this address \
         could read and delete everything; listen on 127.0.0.1 or give an access key and a secret key"
    )]
    Public {
        /// The address asked for.
        address: SocketAddr,
    },
    /// Give a usable access key and secret key.
    #[error("the credentials cannot be used: {why}")]
    Credentials {
        /// What is wrong with them.
        why: &'static str,
    },
    /// Choose a limit that works.
    #[error("the limit {name} cannot be {value}: {why}")]
    Limit {
        /// Its name in [`crate::Limits`].
        name: &'static str,
        /// What was asked for.
        value: u64,
        /// Why not.
        why: &'static str,
    },
    /// Choose another address or port, or end the process that holds it.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// The kernel's reason.
        #[source]
        source: io::Error,
    },
}
