//! Announces the addresses of a server on stdout when clients can connect.

use std::io::{self, Write};

use haul_file_server::Address;

use crate::notify;

/// Prints `addresses` in one line, and notifies the service manager. Ignores errors, because a server
/// must serve even if its stdout is closed.
pub(crate) fn announce(addresses: &str) {
    let mut stdout = io::stdout();
    writeln!(stdout, "haul is ready: {addresses}").and_then(|()| stdout.flush()).ok();
    notify::ready(addresses);
}

/// As [`url`], for a server with TLS.
pub(crate) fn https_url(address: &Address) -> String {
    match address {
        Address::Tcp(address) => format!("https://{address}"),
        Address::Unix(_) => address.to_string(),
    }
}

/// Returns the URL of an HTTP server, or the path of its unix socket.
pub(crate) fn url(address: &Address) -> String {
    match address {
        Address::Tcp(address) => format!("http://{address}"),
        Address::Unix(_) => address.to_string(),
    }
}
