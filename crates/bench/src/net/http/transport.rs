//! Sends and receives on a connection of the load generator: TCP, or TLS over TCP.

use std::io::{ErrorKind, Read, Result as IoResult, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use crate::net::socket::{self, Received, invalid};
use haul_measure::{Error, Result};

/// The name of the server in its certificate.
pub(super) const SERVER_NAME: &str = "localhost";
/// More bytes than one read from a socket with TLS can yield.
const RECORD_BYTES_MAX: usize = 64 << 10;

/// A connected, non-blocking socket, and the session of TLS on it.
#[derive(Debug)]
pub(super) struct Transport {
    stream: TcpStream,
    session: Option<Box<ClientConnection>>,
}

impl Transport {
    /// Connects, and performs the handshake if there is a configuration of TLS.
    pub(super) fn connect(address: SocketAddr, tls: Option<&Arc<ClientConfig>>) -> Result<Self> {
        let what = || format!("connect to {address}");
        let mut stream = TcpStream::connect(address).map_err(Error::other(what()))?;
        stream.set_nodelay(true).map_err(Error::other(what()))?;
        let session = tls.map(|tls| handshake(tls, &mut stream)).transpose();
        let session = session.map_err(Error::other(what()))?;
        stream.set_nonblocking(true).map_err(Error::other(what()))?;
        Ok(Self { stream, session })
    }

    pub(super) fn is_tls(&self) -> bool {
        self.session.is_some()
    }

    /// Sends all bytes. The socket buffer must have room for them.
    pub(super) fn send(&mut self, bytes: &[u8]) -> IoResult<()> {
        let Some(session) = &mut self.session else { return self.stream.write_all(bytes) };
        session.writer().write_all(bytes)?;
        while session.wants_write() {
            session.write_tls(&mut self.stream)?;
        }
        Ok(())
    }

    /// Receives at most `buffer.len()` bytes. If `discard` is `true`, bytes without TLS are dropped
    /// by the kernel. With TLS, `buffer` must have more than [`RECORD_BYTES_MAX`] bytes, so that no
    /// decrypted bytes remain, for which the socket would not become ready.
    pub(super) fn receive(&mut self, buffer: &mut [u8], discard: bool) -> Result<Received> {
        match &mut self.session {
            None => socket::receive(&self.stream, buffer, discard),
            Some(session) => match decrypt(session, &mut self.stream, buffer) {
                Ok(received) => Ok(received),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(Received::Closed),
                Err(error) => Err(invalid(format!("nothing can be received: {error}"))),
            },
        }
    }
}

impl AsFd for Transport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn handshake(tls: &Arc<ClientConfig>, stream: &mut TcpStream) -> IoResult<Box<ClientConnection>> {
    let name = ServerName::try_from(SERVER_NAME).map_err(std::io::Error::other)?;
    let session = ClientConnection::new(Arc::clone(tls), name).map_err(std::io::Error::other)?;
    let mut session = Box::new(session);
    while session.is_handshaking() {
        session.complete_io(stream)?;
    }
    Ok(session)
}

/// Receives until the socket is empty or `buffer` is almost full.
fn decrypt(
    session: &mut ClientConnection,
    stream: &mut TcpStream,
    buffer: &mut [u8],
) -> IoResult<Received> {
    let (mut filled, mut is_open) = (0, true);
    while is_open && buffer.len() - filled > RECORD_BYTES_MAX {
        match session.read_tls(stream) {
            Ok(bytes) => is_open = bytes > 0,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
        session.process_new_packets().map_err(std::io::Error::other)?;
        match session.reader().read(&mut buffer[filled..]) {
            Ok(bytes) => {
                filled += bytes;
                is_open &= bytes > 0;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(match filled {
        0 if is_open => Received::Pending,
        0 => Received::Closed,
        bytes => Received::Bytes(bytes),
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use rustls::{ServerConfig, ServerConnection, StreamOwned};

    use super::super::tls::Tls;
    use super::*;

    fn server(tls: &Tls) -> ServerConnection {
        let certificate = CertificateDer::from_pem_file(&tls.certificate).unwrap();
        let key = PrivateKeyDer::from_pem_file(&tls.key).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let config = builder.with_single_cert(vec![certificate], key).unwrap();
        ServerConnection::new(Arc::new(config)).unwrap()
    }

    #[test]
    fn bytes_over_tls_are_received_completely() {
        let dir = tempfile::tempdir().unwrap();
        let tls = Tls::new(dir.path()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let sent: Vec<u8> = (0..1 << 20).map(|number: u32| number.to_le_bytes()[0]).collect();
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut peer = StreamOwned::new(server(&tls), listener.accept().unwrap().0);
                let mut request = [0; 5];
                peer.read_exact(&mut request).unwrap();
                assert_eq!(&request, b"hello");
                peer.write_all(&sent).unwrap();
                peer.conn.send_close_notify();
                peer.flush().unwrap();
            });
            let mut client = Transport::connect(address, Some(&tls.client)).unwrap();
            client.send(b"hello").unwrap();
            let (mut all, mut buffer) = (Vec::new(), vec![0; 256 << 10]);
            loop {
                match client.receive(&mut buffer, true).unwrap() {
                    Received::Bytes(bytes) => all.extend_from_slice(&buffer[..bytes]),
                    Received::Pending => thread::yield_now(),
                    Received::Closed => break,
                }
            }
            assert!(all == sent, "{} bytes", all.len());
        });
    }
}
