//! Addresses that are reserved before the server listens on them.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use haul_reactor::{Address, Listener, TcpOptions};
use socket2::{Domain, Protocol, Socket, Type};

use crate::error::{Error, Result};

/// Connections the kernel completes before they are accepted. A burst of one client does not fill
/// it before the listener has refused the rest of it.
const BACKLOG: i32 = 4096;

/// An address that is bound, so that no other process gets it.
#[derive(Debug)]
pub(crate) struct Bound {
    source: Source,
    pub(crate) address: SocketAddr,
}

#[derive(Debug)]
enum Source {
    /// Refuses connections until the server listens.
    Reserved(Socket),
    /// Queues connections until the server accepts them.
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
            // A server that is started again need not wait for the connections of the last one.
            socket.set_reuse_address(true)?;
            socket.bind(&address.into())?;
            let address = socket.local_addr()?.as_socket().unwrap_or(address);
            Ok(Self { source: Source::Reserved(socket), address })
        };
        open().map_err(|source: io::Error| Error::Bind { address, source })
    }

    /// Takes a socket that another process listens on.
    pub(crate) fn inherited(listener: Listener) -> Result<Self> {
        match *listener.address() {
            Address::Tcp(address) => Ok(Self { source: Source::Inherited(listener), address }),
            Address::Unix(_) => Err(Error::UnixSocket),
        }
    }

    /// Listens on the address, with a listener for each of `threads` threads.
    pub(crate) fn listen(self, threads: usize, stall_time: Duration) -> Result<Vec<Listener>> {
        let Self { source, address } = self;
        let open = || {
            let first = match source {
                Source::Reserved(socket) => {
                    // The listeners share the address among themselves, and with no other socket.
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

/// Returns the options of connections, for a server that closes them after `stall_time` without
/// progress.
pub(crate) fn tcp_options(stall_time: Duration) -> TcpOptions {
    TcpOptions { user_timeout: Some(stall_time), ..TcpOptions::default() }
}
