//! Defines the errors that prevent a relay from starting, or end it.

use std::io;

/// The result of starting or running a relay.
pub type Result<T> = std::result::Result<T, Error>;

/// An error that prevents a relay from starting, or ends it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration is invalid; the message names the setting.
    #[error("{0}")]
    Invalid(&'static str),
    /// Plain HTTP on a public address: use TLS, or allow plain HTTP.
    #[error(
        "refusing to serve plain HTTP on {address}: other machines can reach it, and the network \
         can read all requests and responses; use TLS, allow plain HTTP or listen on 127.0.0.1"
    )]
    PlainHttp {
        /// The address.
        address: String,
    },
    /// The relay cannot listen on an address: choose another address, or stop the process that uses
    /// it.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: String,
        /// The error of the system call.
        #[source]
        source: io::Error,
    },
    /// The host name of a target cannot be resolved.
    #[error("cannot resolve {name}")]
    Resolve {
        /// The name and the port.
        name: String,
        /// The error of the resolver.
        #[source]
        source: io::Error,
    },
    /// The kernel refused to create a thread, or a resource that a thread needs.
    #[error("cannot start a thread of the relay")]
    Start(#[source] io::Error),
    /// A thread failed to wait for its sockets, or panicked.
    #[error("a thread of the relay failed")]
    Run(#[source] io::Error),
}
