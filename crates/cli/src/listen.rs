//! Resolves the host name of an address to listen on.

use std::net::SocketAddr;

use haul_file_server::{Address, HostAddress};

use crate::report::{Exit, Failure, Result};

/// Returns the address, or the first address of the host name, which is resolved once.
pub(crate) fn resolve(listen: &HostAddress) -> Result<Address> {
    let failure = || Failure::new(format!("cannot resolve {listen}")).exit(Exit::NotStarted);
    let addresses = listen.resolve().map_err(|error| failure().because(error))?;
    addresses.into_iter().next().ok_or_else(failure)
}

/// Returns the address like [`resolve`], for a server without unix sockets.
pub(crate) fn resolve_tcp(listen: &HostAddress) -> Result<SocketAddr> {
    match resolve(listen)? {
        Address::Tcp(address) => Ok(address),
        Address::Unix(_) => {
            Err(Failure::new(format!("{listen} is not a TCP address")).exit(Exit::Usage))
        }
    }
}
