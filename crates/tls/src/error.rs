//! Errors of loading certificates and private keys.

use std::io;
use std::path::PathBuf;

/// The result of loading certificates and private keys.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error that prevents a server from using a certificate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No certificate is configured.
    #[error("no certificate is given; give a certificate and its private key")]
    NoIdentity,
    /// A file cannot be read.
    #[error("cannot read the {content} file {}", path.display())]
    Read {
        /// The expected content: `certificate` or `private key`.
        content: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the kernel.
        source: io::Error,
    },
    /// A file is not valid PEM.
    #[error("cannot parse {} as PEM: {reason}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The certificate file contains no certificate.
    #[error(
        "{} contains no certificate; a PEM file with a section \"BEGIN CERTIFICATE\" is expected, \
         first the certificate of the server, then the intermediate ones",
        path.display()
    )]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The private key file contains no private key.
    #[error(
        "{} contains no private key; a PEM file with a section \"BEGIN PRIVATE KEY\" without a \
         passphrase is expected",
        path.display()
    )]
    NoPrivateKey {
        /// The file.
        path: PathBuf,
    },
    /// The certificate is malformed.
    #[error("cannot parse the first certificate of {}: {reason}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The private key is malformed, or its type is not supported.
    #[error(
        "cannot use the private key of {}: {reason}; RSA keys of 2048 to 8192 bits, ECDSA keys on \
         P-256 or P-384 and Ed25519 keys are supported",
        path.display()
    )]
    PrivateKey {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The private key belongs to another certificate.
    #[error(
        "the private key of {} does not match the first certificate of {}; give the key with which \
         the certificate was requested, and the certificate of the server first",
        key.display(),
        chain.display()
    )]
    Mismatch {
        /// The certificate file.
        chain: PathBuf,
        /// The private key file.
        key: PathBuf,
    },
    /// The kernel returned no random numbers for the keys of session tickets.
    #[error("cannot create the keys of session tickets: {reason}")]
    Tickets {
        /// The reason.
        reason: String,
    },
}
