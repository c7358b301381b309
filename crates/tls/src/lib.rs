//! TLS 1.2 and 1.3 for the accepted sockets of an event loop.
//!
//! # What it is
//! The part of a server on [`haul_reactor`] that terminates TLS; the protocol itself is implemented
//! by the crate `rustls`.
//! - [`Identities`] are the certificates and private keys of a server. They are selected by the
//!   name that the client requests (SNI), and can be reloaded while the server runs.
//! - An [`Acceptor`] begins TLS on an accepted socket.
//! - A [`Transport`] is a socket with or without TLS. It has the calls and the readiness of a
//!   [`Socket`](haul_reactor::Socket), so a server needs only one code path for both.
//!
//! # Example
//! ```no_run
//! use haul_tls::{Acceptor, Alpn, CertificateFiles, Identities};
//!
//! # fn main() -> Result<(), haul_tls::Error> {
//! let files = CertificateFiles { chain: "cert.pem".into(), key: "key.pem".into() };
//! let identities = Identities::load(vec![files])?;
//! let acceptor = Acceptor::new(identities.clone(), Alpn::Http1)?;
//! for warning in identities.warnings() {
//!     eprintln!("{warning}");
//! }
//! // The server calls `acceptor.accept(socket)` for each accepted socket.
//! # drop(acceptor);
//! identities.reload()?; // after a certificate was renewed
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//! - **A truncated stream never looks complete.** A peer that closes its connection without
//!   `close_notify` causes an error, not an end of the stream.
//! - **Reported bytes are with the kernel.** [`Transport::write`] reports bytes only when all of
//!   their records are in the send buffer of the socket. Records that do not fit stay queued, at
//!   most 64 KiB per connection.
//! - A failed reload changes nothing: the previous certificates stay in use.
//!
//! # Cost
//! A write of up to 64 KiB is encrypted into records of 16 KiB, which one `sendmsg` sends; longer
//! writes repeat this. A read is one `recv` per record. A connection without data in flight has no
//! buffer except the session state of `rustls`, a few KiB.
//!
//! # What it is not
//! This crate has no client side, no client certificates, no HTTP/2, no OCSP stapling, and no early
//! data (0-RTT), whose requests an attacker could repeat.
//!
//! # Sources
//! \[RFC8446\] TLS 1.3, in particular section 6.1 on `close_notify`; \[RFC5280\] certificates;
//! \[RFC9525\] names in certificates.

mod acceptor;
mod error;
mod identities;
mod identity;
mod selection;
mod tls_socket;
mod transport;
mod validity;

pub use acceptor::{Acceptor, Alpn};
pub use error::{Error, Result};
pub use identities::Identities;
pub use identity::CertificateFiles;
pub use transport::Transport;
