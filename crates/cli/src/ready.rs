//! The line by which a server tells that it can be used, and where.

use std::io::{self, Write};

use haul_file_server::Address;

/// Prints it. A server whose stdout nobody reads still serves.
pub(crate) fn tell(what: &str) {
    let mut stdout = io::stdout();
    writeln!(stdout, "haul is ready: {what}").and_then(|()| stdout.flush()).ok();
}

/// How people reach an address of a server of HTTP.
pub(crate) fn url(address: &Address) -> String {
    match address {
        Address::Tcp(address) => format!("http://{address}"),
        Address::Unix(_) => address.to_string(),
    }
}
