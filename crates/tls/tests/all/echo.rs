//! A server with or without TLS that echoes its input, sends as many bytes as requested, or closes
//! the connection.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use haul_reactor::{
    AcceptInfo, Address, AdmissionLimit, Connection, Context, Event, Handle, IoStatus, Listener,
    Next, Reactor, Service, Socket, SocketKind, TcpOptions,
};
use haul_testing::tls::Authority;
use haul_tls::{Acceptor, Alpn, CertificateFiles, Identities, Transport};
use tempfile::TempDir;

/// The byte that begins a request for a download; the length follows in 8 bytes.
pub(crate) const DOWNLOAD: u8 = 0;

/// The request to close the connection.
pub(crate) const CLOSE: &[u8] = b"close";

/// The request to reset the connection.
pub(crate) const RESET: &[u8] = b"reset";

struct Echo {
    /// `None` for connections without TLS.
    acceptor: Option<Acceptor>,
    ends: Sender<io::Result<()>>,
}

struct Peer {
    /// `None` after a request to end the connection.
    transport: Option<Transport>,
    pending: Vec<u8>,
    sent: usize,
    is_eof: bool,
    is_shutdown: bool,
}

impl Connection for Peer {
    fn socket(&mut self, _kind: SocketKind) -> Option<&mut Socket> {
        self.transport.as_mut().map(Transport::socket_mut)
    }
}

impl Service for Echo {
    type Connection = Peer;
    type Message = ();

    fn on_accept(
        &mut self,
        socket: Socket,
        _: AcceptInfo,
        _: &mut Context<'_, ()>,
    ) -> Option<Peer> {
        let mut transport = match &self.acceptor {
            Some(acceptor) => acceptor.accept(socket).unwrap(),
            None => Transport::from(socket),
        };
        let is_tls = self.acceptor.is_some();
        assert_eq!((transport.is_tls(), transport.plain().is_none()), (is_tls, is_tls));
        assert_eq!((transport.is_handshaking(), transport.has_unsent()), (is_tls, false));
        let (transport, pending) = (Some(transport), Vec::new());
        Some(Peer { transport, pending, sent: 0, is_eof: false, is_shutdown: false })
    }

    fn drive(&mut self, peer: &mut Peer, _: Event<()>, _: &mut Context<'_, ()>) -> Next {
        match peer.advance() {
            Ok(false) => Next::Wait(None),
            Ok(true) => {
                self.ends.send(Ok(())).unwrap();
                Next::Close
            }
            Err(error) => {
                self.ends.send(Err(error)).unwrap();
                Next::Close
            }
        }
    }
}

impl Peer {
    /// Returns `true` once both directions have ended.
    fn advance(&mut self) -> io::Result<bool> {
        let Some(transport) = &mut self.transport else { return Ok(true) };
        transport.flush()?;
        if !transport.handshake()? {
            return Ok(false);
        }
        let mut buffer = vec![0; 64 << 10];
        loop {
            while self.sent < self.pending.len() {
                if !transport.is_writable() {
                    return Ok(false);
                }
                // Pieces of unequal lengths, of which some are empty.
                let (first, rest) = self.pending[self.sent..].split_at(1);
                let (second, third) = rest.split_at(rest.len() / 3);
                let pieces = [first, &[], second, third].map(IoSlice::new);
                match transport.write(&pieces, false)? {
                    IoStatus::Bytes(bytes) => self.sent += bytes,
                    IoStatus::WouldBlock => return Ok(false),
                }
            }
            if self.is_eof {
                if !self.is_shutdown {
                    transport.shutdown_write()?;
                    self.is_shutdown = true;
                }
                return Ok(!transport.has_unsent());
            }
            if !transport.is_readable() {
                return Ok(false);
            }
            match transport.read(&mut buffer)? {
                IoStatus::WouldBlock => return Ok(false),
                IoStatus::Bytes(0) => self.is_eof = true,
                IoStatus::Bytes(bytes) if &buffer[..bytes] == CLOSE => {
                    self.transport.take().unwrap().close();
                    return Ok(true);
                }
                IoStatus::Bytes(bytes) if &buffer[..bytes] == RESET => {
                    self.transport.take().unwrap().reset();
                    return Ok(true);
                }
                IoStatus::Bytes(bytes) => {
                    self.pending = response(&buffer[..bytes]);
                    self.sent = 0;
                }
            }
        }
    }
}

fn response(request: &[u8]) -> Vec<u8> {
    match request {
        [DOWNLOAD, length @ ..] => download(u64::from_le_bytes(length.try_into().unwrap())),
        _ => request.to_vec(),
    }
}

/// Returns the content of a download of this length.
pub(crate) fn download(bytes: u64) -> Vec<u8> {
    (0..bytes).map(|index| u8::try_from(index % 251).unwrap()).collect()
}

/// A running server, its authority and its certificate files.
pub(crate) struct Server {
    pub(crate) authority: Authority,
    pub(crate) address: SocketAddr,
    pub(crate) identities: Arc<Identities>,
    pub(crate) dir: TempDir,
    ends: Receiver<io::Result<()>>,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server with one certificate for each group of names.
    pub(crate) fn start(names: &[&[&str]]) -> Self {
        Self::start_with(names, true)
    }

    /// Starts a server without TLS.
    pub(crate) fn start_plain() -> Self {
        Self::start_with(&[&["localhost"]], false)
    }

    fn start_with(names: &[&[&str]], has_tls: bool) -> Self {
        let (authority, dir) = (Authority::new(), tempfile::tempdir().unwrap());
        let write = |(index, names): (usize, &&[&str])| {
            let [chain, key] = authority.issue(names).write(dir.path(), &index.to_string());
            CertificateFiles { chain, key }
        };
        let files = names.iter().enumerate().map(write).collect();
        let identities = Identities::load(files).unwrap();
        let acceptor = Acceptor::new(Arc::clone(&identities), Alpn::Http1).unwrap();
        let acceptor = has_tls.then_some(acceptor);
        let address: Address = "127.0.0.1:0".parse().unwrap();
        let listener = Listener::bind(&address, TcpOptions::default(), 16).unwrap();
        let Address::Tcp(address) = *listener.address() else { unreachable!() };
        let (sender, ends) = channel();
        let service = Echo { acceptor, ends: sender };
        let reactor = Reactor::new(service, vec![listener], AdmissionLimit::new(100)).unwrap();
        let handle = reactor.handle();
        let thread = std::thread::spawn(move || drop(reactor.run().unwrap()));
        Self { authority, address, identities, dir, ends, handle, thread: Some(thread) }
    }

    /// Waits for the end of the next connection that ends.
    pub(crate) fn end(&self) -> io::Result<()> {
        self.ends.recv().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.handle.stop();
        self.thread.take().unwrap().join().unwrap();
    }
}
