//! Addresses that are bound before the server listens on them.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use haul_reactor::{Address, Listener};
use socket2::{Domain, Protocol, Socket, Type};

use crate::config::tcp_options;
use crate::error::{Error, Result};

/// The accept queue's length. It exceeds the number of connections that one client opens before the
/// listener starts to reject them.
const BACKLOG: i32 = 4096;

/// An address that is bound, so that no other process can bind it.
#[derive(Debug)]
pub(crate) struct Bound {
    source: Source,
    pub(crate) address: SocketAddr,
}

#[derive(Debug)]
enum Source {
    /// A bound socket that does not listen yet: the kernel refuses connections.
    Reserved(Socket),
    /// A socket that already listens, because another process or [`Bound::listen_early`] has
    /// started it: the kernel queues connections.
    Inherited(Listener),
}

impl Bound {
    pub(crate) fn new(address: SocketAddr) -> Result<Self> {
        let open = || {
            let socket = Socket::new(
                Domain::for_address(address),
                Type::STREAM.cloexec(),
                Some(Protocol::TCP),
            )?;
            // Allows an immediate restart, while the previous process's connections are in
            // TIME_WAIT.
            socket.set_reuse_address(true)?;
            socket.bind(&address.into())?;
            let address = socket.local_addr()?.as_socket().unwrap_or(address);
            Ok(Self { source: Source::Reserved(socket), address })
        };
        open().map_err(|source: io::Error| Error::Bind { address, source })
    }

    /// Wraps a socket on which another process listens.
    pub(crate) fn inherited(listener: Listener) -> Result<Self> {
        match *listener.address() {
            Address::Tcp(address) => Ok(Self { source: Source::Inherited(listener), address }),
            Address::Unix(_) => Err(Error::UnixSocket),
        }
    }

    /// Listens on the address, and returns a listener for the time until [`Self::listen`]. Both
    /// share the accept queue, so that the kernel refuses no connection in between.
    pub(crate) fn listen_early(&mut self, stall_time: Duration) -> Result<Listener> {
        let address = self.address;
        let listen = |source: &Source| match source {
            Source::Reserved(socket) => {
                socket.listen(BACKLOG)?;
                Listener::inherit(socket.try_clone()?.into(), tcp_options(stall_time))
            }
            Source::Inherited(listener) => listener.another(),
        };
        let mut open = || {
            let listener = listen(&self.source)?;
            self.source = Source::Inherited(listener.another()?);
            Ok(listener)
        };
        open().map_err(|source: io::Error| Error::Bind { address, source })
    }

    /// Listens on the address and returns one listener per thread.
    pub(crate) fn listen(self, threads: usize, stall_time: Duration) -> Result<Vec<Listener>> {
        let Self { source, address } = self;
        let open = || {
            let first = match source {
                Source::Reserved(socket) => {
                    // The listeners share the address with one another, but not with this socket.
                    drop(socket);
                    let tcp = tcp_options(stall_time);
                    Listener::bind(&Address::Tcp(address), tcp, BACKLOG)?
                }
                Source::Inherited(listener) => listener,
            };
            let mut listeners = vec![first];
            for _ in 1..threads {
                listeners.push(listeners[0].another()?);
            }
            Ok(listeners)
        };
        open().map_err(|source: io::Error| Error::Bind { address, source })
    }
}
