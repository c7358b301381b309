//! Runs the same tests over plain TCP, over an inherited listening socket, and over TLS.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::tls::{Authority, Issued, TlsClient};
use crate::wait::PATIENCE;

/// The transport between the clients of a test and its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Plain,
    /// TCP; another owner opened the listening socket and passes it to the server.
    Inherited,
    /// TLS over TCP.
    Tls,
}

/// Defines tests that run functions over each of the transports: `over!(Plain Tls => (a, b))`
/// defines `plain::a`, `plain::b`, `tls::a` and `tls::b`, which pass the transport to the functions
/// `a` and `b`.
#[macro_export]
macro_rules! over {
    (@Plain $tests:tt) => { $crate::over!(@module plain Plain $tests); };
    (@Inherited $tests:tt) => { $crate::over!(@module inherited Inherited $tests); };
    (@Tls $tests:tt) => { $crate::over!(@module tls Tls $tests); };
    (@module $module:ident $transport:ident ($($test:ident),+ $(,)?)) => {
        mod $module {
            $(
                #[test]
                fn $test() {
                    super::$test($crate::Transport::$transport);
                }
            )+
        }
    };
    ($($transport:ident)+ => $tests:tt) => { $($crate::over!(@$transport $tests);)+ };
}

/// The settings of clients of [`Endpoint`], and the certificate of servers.
struct Trust {
    config: Arc<ClientConfig>,
    issued: Issued,
}

static TRUST: LazyLock<Trust> = LazyLock::new(|| {
    let authority = Authority::new();
    let issued = authority.issue(&["localhost"]);
    Trust { config: Arc::new(authority.client_config()), issued }
});

/// Returns the certificate of servers with [`Transport::Tls`], which [`Endpoint::connect`] trusts.
#[must_use]
pub fn server_certificate() -> &'static Issued {
    &TRUST.issued
}

/// The address of a server, and the transport to it.
#[derive(Debug, Clone, Copy)]
pub struct Endpoint {
    /// The address.
    pub address: SocketAddr,
    /// The transport.
    pub transport: Transport,
}

impl Endpoint {
    /// Connects, and performs the handshake of TLS.
    ///
    /// # Errors
    /// The error of the socket, or of the handshake.
    pub fn connect(&self) -> io::Result<ClientStream> {
        self.handshake(TcpStream::connect(self.address)?)
    }

    /// Performs the handshake of TLS, if any, on a connected socket.
    ///
    /// # Errors
    /// The error of the socket, or of the handshake.
    pub fn handshake(&self, socket: TcpStream) -> io::Result<ClientStream> {
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        socket.set_nodelay(true)?;
        if self.transport != Transport::Tls {
            return Ok(ClientStream::Plain(socket));
        }
        let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
        let session = ClientConnection::new(Arc::clone(&TRUST.config), name);
        let mut stream = StreamOwned::new(session.map_err(io::Error::other)?, socket);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(ClientStream::Tls(Box::new(stream)))
    }
}

/// The client side of a connection to an [`Endpoint`].
#[derive(Debug)]
pub enum ClientStream {
    /// TCP.
    Plain(TcpStream),
    /// TLS over TCP.
    Tls(Box<TlsClient>),
}

impl ClientStream {
    /// Returns the socket below the stream.
    #[must_use]
    pub fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(tls) => &tls.sock,
        }
    }

    /// Sends the end of the stream: `close_notify` over TLS, and FIN. The stream stays open for
    /// reading.
    ///
    /// # Errors
    /// The error of the socket. After `WouldBlock`, the caller must repeat the call.
    pub fn shutdown_write(&mut self) -> io::Result<()> {
        if let Self::Tls(tls) = self {
            tls.conn.send_close_notify();
            while tls.conn.wants_write() {
                tls.conn.write_tls(&mut tls.sock)?;
            }
        }
        self.tcp().shutdown(Shutdown::Write)
    }

    /// Closes the connection with a reset.
    ///
    /// # Panics
    /// Panics if the socket rejects the option.
    pub fn reset(self) {
        rustix::net::sockopt::set_socket_linger(self.tcp(), Some(Duration::ZERO)).unwrap();
    }

    /// Returns `true` if received bytes are decrypted but not read, so that a read returns bytes
    /// although the socket is not readable.
    pub fn has_decrypted(&mut self) -> bool {
        let Self::Tls(tls) = self else { return false };
        tls.conn.process_new_packets().is_ok_and(|state| state.plaintext_bytes_to_read() > 0)
    }
}

/// Repeats a call that a signal interrupted. The kernel ends calls on a socket with a timeout when it
/// stops and continues the process, or another process traces it, even without a signal handler.
fn uninterrupted(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

impl Read for ClientStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        uninterrupted(|| match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(tls) => tls.read(buffer),
        })
    }
}

impl Write for ClientStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        uninterrupted(|| match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(tls) => tls.write(bytes),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Tls(tls) => tls.flush(),
        }
    }
}

impl AsFd for ClientStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tcp().as_fd()
    }
}
