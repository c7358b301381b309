//! Reserves an address for a process that a test starts later.

use std::fmt::{self, Display, Formatter};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};

/// A loopback address on which no process listens, and which the kernel gives to no other one. A
/// process with `SO_REUSEADDR` can listen on it.
#[derive(Debug)]
pub struct ReservedAddress {
    address: SocketAddr,
    _socket: OwnedFd,
}

impl ReservedAddress {
    /// Reserves an address, until this value is dropped.
    ///
    /// # Panics
    /// Panics if no port is free.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it has an effect on the system")]
    pub fn new() -> Self {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        set_socket_reuseaddr(&socket, true).unwrap();
        bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = SocketAddr::try_from(getsockname(&socket).unwrap()).unwrap();
        Self { address, _socket: socket }
    }
}

impl Display for ReservedAddress {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn reserved_address_refuses_connections_and_can_be_listened_on_repeatedly() {
        let reserved = ReservedAddress::new();
        assert!(TcpStream::connect(reserved.address).is_err());
        for _ in 0..2 {
            let listener = TcpListener::bind(reserved.address).unwrap();
            TcpStream::connect(reserved.address).unwrap();
            drop(listener);
        }
    }
}
