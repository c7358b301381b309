//! Accepting connections within limits.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use socket2::SockRef;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::{Admission, Connections, Slot};
use crate::config::Limits;
use crate::error::{Error, Result};

/// The pause after the kernel refused a connection, which it does when files run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The time after which a connection that found no place tries again: others have waited longer by
/// then, and may give way.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// Connections the kernel completes before they are accepted. A burst of one client does not fill
/// it before the listener has turned the rest of it away.
const BACKLOG: u32 = 4096;

/// The answer to a client with too many connections.
const TOO_MANY: &[u8] = b"HTTP/1.1 503 Slow Down\r\n\
    content-type: application/xml\r\ncontent-length: 128\r\nconnection: close\r\nretry-after: 1\r\n\r\n\
    <?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>SlowDown</Code>\
    <Message>Too many connections of this client</Message></Error>";

/// An address that is bound, so that no other process gets it, and that refuses connections.
#[derive(Debug)]
pub(crate) struct Bound {
    socket: TcpSocket,
    pub(crate) address: SocketAddr,
}

impl Bound {
    pub(crate) fn new(address: SocketAddr) -> Result<Self> {
        let open = || {
            let socket =
                if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
            // A server that is started again need not wait for the connections of the last one.
            socket.set_reuseaddr(true)?;
            socket.bind(address)?;
            let address = socket.local_addr()?;
            Ok(Self { socket, address })
        };
        open().map_err(|source: io::Error| Error::Bind { address, source })
    }
}

/// An address that accepts connections.
pub(crate) struct Listener {
    listener: TcpListener,
    connections: Arc<Connections>,
    stall_time_max: Duration,
    /// Accepted, and not admitted yet.
    next: Option<(TcpStream, SocketAddr)>,
}

impl Listener {
    pub(crate) fn new(bound: Bound, limits: &Limits) -> Result<Self> {
        let Bound { socket, address } = bound;
        let listener = socket.listen(BACKLOG).map_err(|source| Error::Bind { address, source })?;
        let connections = Connections::new(limits);
        Ok(Self { listener, connections, stall_time_max: limits.stall_time_max, next: None })
    }

    /// All connections of this listener.
    pub(crate) fn connections(&self) -> &Arc<Connections> {
        &self.connections
    }

    /// Returns the next connection there is a place for. May be cancelled: no connection is lost.
    pub(crate) async fn next(&mut self) -> (TcpStream, Slot) {
        loop {
            let (stream, peer) = match self.next.take() {
                Some(next) => next,
                None => self.accept().await,
            };
            match self.connections.admit(peer.ip()) {
                Admission::Admitted(slot) => {
                    if let Err(error) = prepare(&stream, self.stall_time_max) {
                        tracing::debug!(%error, "a connection keeps the kernel's defaults");
                    }
                    return (stream, slot);
                }
                // What the socket does not take at once is not sent.
                Admission::PeerFull => drop(stream.try_write(TOO_MANY)),
                Admission::Full => {
                    self.next = Some((stream, peer));
                    let released = self.connections.released();
                    drop(tokio::time::timeout(RETRY_PAUSE, released).await);
                }
            }
        }
    }

    async fn accept(&self) -> (TcpStream, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok(accepted) => return accepted,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// Sends small answers without delay, and has the kernel give up clients that take nothing, so that
/// they cannot hold what is being sent for ever.
fn prepare(stream: &TcpStream, stall_time_max: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    SockRef::from(stream).set_tcp_user_timeout(Some(stall_time_max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_is_as_long_as_it_declares() {
        let text = str::from_utf8(TOO_MANY).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{}", body.len());
    }
}
