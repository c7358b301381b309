//! Begins TLS on accepted sockets.

use std::fmt;
use std::sync::Arc;

use haul_reactor::Socket;
use rustls::crypto::ring::Ticketer;
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, ServerConnection};

use crate::error::{Error, Result};
use crate::identities::Identities;
use crate::tls_socket::TlsSocket;
use crate::transport::Transport;

/// The application protocol that is negotiated with clients (ALPN).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Alpn {
    /// No protocol is negotiated.
    #[default]
    None,
    /// `http/1.1`. A client that offers only other protocols is refused.
    Http1,
}

/// The settings of the TLS connections of a server. Clones share the settings.
#[derive(Clone)]
pub struct Acceptor {
    config: Arc<ServerConfig>,
}

impl Acceptor {
    /// Creates the settings: TLS 1.2 and 1.3, with session tickets, whose keys exist only in memory
    /// and change every six hours.
    ///
    /// # Errors
    /// If the kernel returns no random numbers.
    pub fn new(identities: Arc<Identities>, alpn: Alpn) -> Result<Self> {
        let failed = |error: rustls::Error| Error::Tickets { reason: error.to_string() };
        let provider = Arc::clone(identities.provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13, &TLS12])
            .map_err(failed)?
            .with_no_client_auth()
            .with_cert_resolver(identities);
        config.ticketer = Ticketer::new().map_err(failed)?;
        if alpn == Alpn::Http1 {
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
        }
        Ok(Self { config: Arc::new(config) })
    }

    /// Begins TLS on a socket whose peer is a TLS client. [`Transport::handshake`] and
    /// [`Transport::read`] perform the handshake.
    ///
    /// # Errors
    /// If a session cannot be created.
    pub fn accept(&self, socket: Socket) -> std::io::Result<Transport> {
        let session =
            ServerConnection::new(Arc::clone(&self.config)).map_err(std::io::Error::other)?;
        let is_http = !self.config.alpn_protocols.is_empty();
        Ok(Transport::tls(TlsSocket::new(socket, session, is_http)))
    }
}

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acceptor")
            .field("alpn", &self.config.alpn_protocols)
            .finish_non_exhaustive()
    }
}
