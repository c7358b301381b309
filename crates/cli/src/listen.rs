//! Resolves the host name of an address to listen on.

use haul_file_server::{Address, HostAddress};

use crate::report::{Exit, Failure, Result};

/// Returns the address, or the first address of the host name, which is resolved once.
pub(crate) fn resolve(listen: &HostAddress) -> Result<Address> {
    let failure = || Failure::new(format!("cannot resolve {listen}")).exit(Exit::NotStarted);
    let addresses = listen.resolve().map_err(|error| failure().because(error))?;
    addresses.into_iter().next().ok_or_else(failure)
}
