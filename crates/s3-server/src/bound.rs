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

/// An address that is bound, so that no other process gets it, and that refuses connections.
#[derive(Debug)]
pub(crate) struct Bound {
    socket: Socket,
    pub(crate) address: SocketAddr,
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
            Ok(Self { socket, address })
        };
        open().map_err(|source: io::Error| Error::Bind { address, source })
    }

    /// Listens on the address, with a listener for each of `threads` threads.
    pub(crate) fn listen(self, threads: usize, stall_time: Duration) -> Result<Vec<Listener>> {
        let Self { socket, address } = self;
        let tcp = TcpOptions { user_timeout: Some(stall_time), ..TcpOptions::default() };
        let open = || {
            // The listeners share the address among themselves, and with no other socket.
            drop(socket);
            let mut listeners = vec![Listener::bind(&Address::Tcp(address), tcp, BACKLOG)?];
            for _ in 1..threads {
                listeners.push(listeners[0].another()?);
            }
            Ok(listeners)
        };
        open().map_err(|source: io::Error| Error::Bind { address, source })
    }
}
