//! Addresses that are bound before the server listens on them.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use haul_reactor::{Address, Listener, TcpOptions};
use socket2::{Domain, Protocol, Socket, Type};

use crate::error::{Error, Result};

/// The length of the accept queue. It exceeds the number of connections that one client opens
/// before the listener starts to refuse them.
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
    /// A socket that another process listens on: the kernel queues connections.
    Inherited(Listener),
    /// A temporary listener has the address.
    Lent,
}

impl Bound {
    pub(crate) fn new(address: SocketAddr) -> Result<Self> {
        let open = || {
            let socket = Socket::new(
                Domain::for_address(address),
                Type::STREAM.cloexec(),
                Some(Protocol::TCP),
            )?;
            // Allows an immediate restart, while connections of the previous process are in
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

    /// Listens on the address for some time, until [`Self::listen`].
    pub(crate) fn listen_temporarily(&mut self, stall_time: Duration) -> Result<Listener> {
        let address = self.address;
        let listener = match std::mem::replace(&mut self.source, Source::Lent) {
            Source::Inherited(listener) => {
                let another = listener.another();
                self.source = Source::Inherited(listener);
                another
            }
            reserved => {
                drop(reserved);
                Listener::bind(&Address::Tcp(address), tcp_options(stall_time), BACKLOG)
            }
        };
        listener.map_err(|source: io::Error| Error::Bind { address, source })
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
                Source::Lent => {
                    Listener::bind(&Address::Tcp(address), tcp_options(stall_time), BACKLOG)?
                }
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

/// Returns the socket options for connections that are closed after `stall_time` without progress.
pub(crate) fn tcp_options(stall_time: Duration) -> TcpOptions {
    TcpOptions { user_timeout: Some(stall_time), ..TcpOptions::default() }
}
