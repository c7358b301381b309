//! Errors in starting and running a server, and in files with keys or lifecycle rules.

use std::io;
use std::net::SocketAddr;

/// The result of starting or running a server, or of using a file with keys or lifecycle rules.
pub type Result<T> = std::result::Result<T, Error>;

/// An error that prevents a server from starting or terminates it, or an invalid file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A public address without credentials: listen on 127.0.0.1, or set credentials.
    #[error(
        "refusing to listen on {address} without credentials: anyone who reaches this address \
         could read and delete everything; listen on 127.0.0.1 or give an access key and a secret key"
    )]
    Public {
        /// The configured address.
        address: SocketAddr,
    },
    /// A public address without TLS: give certificates, or allow plain HTTP.
    #[error(
        "refusing to listen on {address} without TLS: objects would be readable on the network; give \
         a certificate, or allow plain HTTP if a proxy or the network itself encrypts"
    )]
    PlainHttp {
        /// The configured address.
        address: SocketAddr,
    },
    /// An invalid domain: give a domain name.
    #[error("invalid domain {domain}: {why}")]
    Domain {
        /// The configured name.
        domain: String,
        /// The rule that it violates.
        why: &'static str,
    },
    /// Invalid credentials: set a valid access key and secret key.
    #[error("invalid credentials: {why}")]
    Credentials {
        /// The rule that they violate.
        why: &'static str,
    },
    /// An event target is invalid: correct its settings.
    #[error("invalid event target {name:?}: {why}")]
    EventTarget {
        /// The target's name.
        name: String,
        /// The rule that it violates.
        why: String,
    },
    /// A key file cannot be used: restore it, or use its sealing key.
    #[error("the key file {why}")]
    KeyFile {
        /// The reason; a sentence about the file.
        why: String,
    },
    /// A key change is invalid: correct the change.
    #[error("{why}")]
    Keys {
        /// The rule that it violates.
        why: String,
    },
    /// A sealing key is malformed: use the file that was created together with the key file.
    #[error("it is no sealing key of haul")]
    SealingKey,
    /// A name is no valid encryption key name: use 1 to 128 letters, digits, `.`, `_` and `-`.
    #[error("{name:?} is no name of a key: use 1 to 128 letters, digits, \".\", \"_\" and \"-\"")]
    EncryptionKeyName {
        /// The name.
        name: String,
    },
    /// A file with encryption keys cannot be used: use one that `haul keys` has created.
    #[error("it is no file with encryption keys of haul: {why}")]
    EncryptionKeys {
        /// The reason.
        why: String,
    },
    /// An invalid limit: choose another value.
    #[error("invalid limit {name} = {value}: {why}")]
    Limit {
        /// The limit's name in [`crate::Limits`].
        name: &'static str,
        /// The configured value.
        value: u64,
        /// The rule that it violates.
        why: &'static str,
    },
    /// The server cannot listen on an address: choose another, or stop the process that uses it.
    #[error("cannot listen on {address}")]
    Bind {
        /// The configured address.
        address: SocketAddr,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// An inherited socket is a unix socket: pass a TCP socket.
    #[error("the inherited socket is a unix socket, but S3 clients need TCP")]
    UnixSocket,
    /// The server's threads cannot start or continue: raise the process limits.
    #[error("cannot run the threads of the server")]
    Start {
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// The configuration of OpenID Connect providers is invalid: correct it.
    #[error("invalid configuration of providers: {why}")]
    Provider {
        /// The reason.
        why: String,
    },
    /// A policy is malformed or not supported: correct it.
    #[error("{why}")]
    Policy {
        /// The reason.
        why: String,
    },
    /// Lifecycle rules are invalid, or not supported: correct them.
    #[error("{message}")]
    Lifecycle {
        /// The S3 error code, such as `MalformedXML` or `NotImplemented`.
        code: String,
        /// The rule that is violated.
        message: String,
    },
}
