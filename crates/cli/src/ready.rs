//! Announces the addresses of a server on stdout when clients can connect, and prints its counts at
//! the end.

use std::fmt::Display;
use std::io::{self, Write};

use haul_file_server::Address;
use serde_json::{Value, json};

use crate::notify;

/// Prints the addresses in one line: as a JSON object of the kind `ready` if `json` has its other
/// keys, otherwise as `text`. Notifies the service manager.
pub(crate) fn announce(json: Option<Value>, text: &str) {
    match json {
        Some(json) => print_of_kind("ready", json),
        None => print(format_args!("haul is ready: {text}")),
    }
    notify::ready(text);
}

/// Prints a JSON object, to which its kind is added.
pub(crate) fn print_of_kind(kind: &str, mut json: Value) {
    json["kind"] = json!(kind);
    print(json);
}

/// Prints a line. Ignores errors, because a server must serve even if its stdout is closed.
fn print(line: impl Display) {
    let mut stdout = io::stdout();
    writeln!(stdout, "{line}").and_then(|()| stdout.flush()).ok();
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
